package main

import (
	"bytes"
	"os"
	"strconv"
)

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
