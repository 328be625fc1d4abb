package main

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

// firstCollection is the heap, in percent of the runtime's least one of 4 MiB, at which garbage is collected for the
// first time: 128 MiB. Most runs are over by then, and a tenth of their time went into collections.
const firstCollection = 3200

// delayCollection puts the first collection of garbage off. From then on the usual pace holds, which the
// variable GOGC can set, so that large heaps grow no faster than they would.
func delayCollection() {
	usual := debug.SetGCPercent(firstCollection)
	if usual < 0 || usual > firstCollection {
		debug.SetGCPercent(usual)
		return
	}
	type collected struct{ _ *int }
	runtime.SetFinalizer(&collected{new(int)}, func(*collected) { debug.SetGCPercent(usual) })
}

// peakMemory returns the most resident memory that this process has had so far, in bytes, mapped pages of
// files that were touched included; 0 where the system does not say (it is read from Linux's /proc).
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(status, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	words := bytes.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(string(words[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
