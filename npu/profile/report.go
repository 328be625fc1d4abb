// Package profile says what the simulated time of a program goes into: by source node, by cluster, by part of the training
// step, by unit, by memory. All figures are simulated cycles of the described machine, not measurements.
package profile

import (
	"cmp"
	"slices"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
	"gradtool/npu/sim"
)

// Note is the caveat that every rendering carries.
const Note = "simulated cycles of the described machine, not a measurement of any hardware"

// Report is the cost of a program.
type Report struct {
	Note        string  `json:"note"`
	Program     string  `json:"program,omitempty"`
	Machine     Machine `json:"machine"`
	Total       Cost    `json:"total"`
	Seconds     float64 `json:"seconds"`
	Units       []Unit  `json:"units"`
	Traffic     []Bytes `json:"dram_bytes_by_purpose"`
	Roles       []Cost  `json:"roles"`
	Clusters    []Cost  `json:"clusters"`
	Operators   []Cost  `json:"operators"`
	Nodes       []Cost  `json:"nodes"`
	Time        []Slice `json:"time"` // equal stretches of time, in order
	Scratchpad  Memory  `json:"scratchpad"`
	Accumulator Memory  `json:"accumulator"`
	DRAM        int64   `json:"dram_allocated_bytes"`
	Code        Code    `json:"instructions"`
}

// Machine names the machine and its peaks.
type Machine struct {
	Name          string `json:"name"`
	SHA256        string `json:"sha256"`
	ClockMHz      int    `json:"clock_mhz"`
	PeakMACs      int    `json:"peak_macs_per_cycle"`
	DRAMPerCycle  int    `json:"dram_bytes_per_cycle"`
	VectorLanes   int    `json:"vector_lanes"`
	SpecialPerCyc int    `json:"special_per_cycle"`
}

// Cost is what a node, or a group of nodes, costs.
type Cost struct {
	Name    string `json:"name"`
	Op      string `json:"op,omitempty"`
	Role    string `json:"role,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Cycles is the part of the whole time that is booked for the node; Share is its fraction.
	Cycles float64 `json:"cycles"`
	Share  float64 `json:"share"`
	// Busy is the time of each unit.
	Load   float64 `json:"load_cycles"`
	Store  float64 `json:"store_cycles"`
	Matrix float64 `json:"matrix_cycles"`
	Vector float64 `json:"vector_cycles"`

	MACs     int64 `json:"macs"`
	Elements int64 `json:"vector_elements"`
	Read     int64 `json:"dram_read_bytes"`
	Written  int64 `json:"dram_written_bytes"`
	// Traffic is Read and Written by purpose; purposes without traffic are left out.
	Traffic []Bytes `json:"dram_bytes_by_purpose"`
	// Utilisation is MACs over what the array could do in Cycles.
	Utilisation float64 `json:"utilisation"`
	// Intensity is MACs per byte of DRAM traffic; 0 where there is none.
	Intensity float64 `json:"macs_per_byte"`
	// Bound is the roofline: the cycles that the MACs need at the array's peak, or the bytes at DRAM's, whichever is more.
	// Roof says which; Achieved is Bound over Cycles, or over the time of the node's busiest unit where that is longer because
	// part of it passes under other nodes.
	Bound    float64 `json:"roofline_cycles"`
	Roof     string  `json:"roof"`
	Achieved float64 `json:"roofline_achieved"`
	// Binds is the unit that is busy longest in the node's instructions, or "latency" if none is for half of Cycles.
	Binds string `json:"binds"`
}

// Unit is the time of a queue by reason.
type Unit struct {
	Name      string   `json:"name"`
	Busy      float64  `json:"busy"`
	Contended float64  `json:"contended"` // part of Busy lost to others that use the same memory
	Idle      []Reason `json:"idle"`
}

// Reason is a cause for which a unit stands still.
type Reason struct {
	Why    string  `json:"why"`
	Cycles float64 `json:"cycles"`
}

// Bytes is the traffic of a purpose.
type Bytes struct {
	Purpose string `json:"purpose"`
	Read    int64  `json:"read"`
	Written int64  `json:"written"`
}

// Memory is the use of an on-chip memory.
type Memory struct {
	Bytes    int     `json:"bytes"`
	Peak     int64   `json:"peak"`
	OverTime []int64 `json:"over_time"` // the most in use in each of equal stretches of time
}

// Code counts instructions.
type Code struct {
	Load   int `json:"load"`
	Store  int `json:"store"`
	Matrix int `json:"matrix"`
	Vector int `json:"vector"`
}

// New makes the report of a program and its timeline.
func New(p *isa.Program, tl *sim.Timeline) *Report {
	m := p.Machine
	r := &Report{
		Note: Note, Program: p.Name, Seconds: tl.Cycles / (float64(m.ClockMHz) * 1e6), DRAM: p.DRAMBytes,
		Machine: Machine{m.Name, m.Hash(), m.ClockMHz, m.PeakMACs(), m.DMA.BytesPerCycle, m.Vector.Lanes, m.Vector.Special},
		Code:    Code{len(p.Queues[isa.Load]), len(p.Queues[isa.Store]), len(p.Queues[isa.Matrix]), len(p.Queues[isa.Vector])},
	}
	total := sim.NodeTime{}
	for i, n := range p.Nodes {
		t := &tl.Nodes[i]
		add(&total, t)
		if t.Cycles == 0 && *t == (sim.NodeTime{}) {
			continue
		}
		r.Nodes = append(r.Nodes, cost(m, tl, n, t))
	}
	if tl.Other != (sim.NodeTime{}) {
		add(&total, &tl.Other)
		r.Nodes = append(r.Nodes, cost(m, tl, isa.Source{Name: "(no node)"}, &tl.Other))
	}
	r.Total = cost(m, tl, isa.Source{Name: "total"}, &total)
	r.Roles = groups(p, tl, func(s isa.Source) string { return cmp.Or(s.Role, "forward") })
	r.Clusters = groups(p, tl, func(s isa.Source) string { return cmp.Or(s.Cluster, noCluster) })
	if len(r.Clusters) == 1 && r.Clusters[0].Name == noCluster {
		r.Clusters = []Cost{}
	}
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		u := Unit{Name: q.String(), Busy: tl.Time[q][sim.Busy], Contended: tl.Contended[q]}
		for why := sim.Reason(0); why < sim.NumReasons; why++ {
			if why != sim.Busy && tl.Time[q][why] > 0 {
				u.Idle = append(u.Idle, Reason{why.String(), tl.Time[q][why]})
			}
		}
		r.Units = append(r.Units, u)
	}
	r.Traffic = r.Total.Traffic
	r.Operators = groups(p, tl, func(s isa.Source) string { return s.Op })
	r.Time = stretches(tl)
	r.Scratchpad = memory(m.Scratchpad.Bytes, tl.Scratchpad)
	r.Accumulator = memory(m.Accumulator.Bytes, tl.Accumulator)
	return r
}

// noCluster is the name of the nodes that are of no cluster, where others are.
const noCluster = "(no cluster)"

func memory(bytes int, use []int64) Memory {
	mem := Memory{Bytes: bytes, OverTime: use}
	for _, b := range use {
		mem.Peak = max(mem.Peak, b)
	}
	return mem
}

// add sums up costs.
func add(to, t *sim.NodeTime) {
	to.Cycles += t.Cycles
	to.MACs += t.MACs
	to.Elements += t.Elements
	to.BusBytes += t.BusBytes
	for q := range t.Busy {
		to.Busy[q] += t.Busy[q]
		to.Instructions[q] += t.Instructions[q]
	}
	for i := range t.Read {
		to.Read[i] += t.Read[i]
		to.Written[i] += t.Written[i]
	}
}

// groups sums up the nodes of each name that key gives, "" being left out, in the order of their first nodes.
func groups(p *isa.Program, tl *sim.Timeline, key func(isa.Source) string) []Cost {
	var names []string
	sums := map[string]*sim.NodeTime{}
	for i, n := range p.Nodes {
		k := key(n)
		if k == "" {
			continue
		}
		if sums[k] == nil {
			sums[k] = &sim.NodeTime{}
			names = append(names, k)
		}
		add(sums[k], &tl.Nodes[i])
	}
	list := []Cost{}
	for _, k := range names {
		list = append(list, cost(p.Machine, tl, isa.Source{Name: k}, sums[k]))
	}
	return list
}

// cost computes the figures of a node.
func cost(m *machine.Machine, tl *sim.Timeline, n isa.Source, t *sim.NodeTime) Cost {
	c := Cost{
		Name: n.Name, Op: n.Op, Role: n.Role, Cluster: n.Cluster, Cycles: t.Cycles, MACs: t.MACs, Elements: t.Elements,
		Load: t.Busy[isa.Load], Store: t.Busy[isa.Store], Matrix: t.Busy[isa.Matrix], Vector: t.Busy[isa.Vector],
	}
	c.Traffic = []Bytes{}
	for i := range isa.NumPurposes {
		c.Read += t.Read[i]
		c.Written += t.Written[i]
		if t.Read[i]+t.Written[i] > 0 {
			c.Traffic = append(c.Traffic, Bytes{i.String(), t.Read[i], t.Written[i]})
		}
	}
	compute := float64(c.MACs) / float64(m.PeakMACs())
	moved := float64(c.Read+c.Written) / float64(m.DMA.BytesPerCycle)
	c.Bound, c.Roof = compute, "compute"
	if moved > compute {
		c.Bound, c.Roof = moved, "dram"
	}
	if c.Read+c.Written > 0 {
		c.Intensity = float64(c.MACs) / float64(c.Read+c.Written)
	}
	if c.Cycles > 0 {
		c.Utilisation = compute / c.Cycles
	}
	// The two DMA engines share one path, so that their busy times would count it twice.
	path := float64(t.BusBytes) / float64(m.DMA.BytesPerCycle)
	if span := max(c.Cycles, c.Load, c.Store, c.Matrix, c.Vector, path); span > 0 {
		c.Achieved = c.Bound / span
	}
	if tl.Cycles > 0 {
		c.Share = c.Cycles / tl.Cycles
	}
	c.Binds = "latency"
	most := c.Cycles / 2
	for _, u := range []struct {
		name string
		busy float64
	}{{"matrix", c.Matrix}, {"vector", c.Vector}, {"dma", max(path, c.Load, c.Store)}} {
		if u.busy > most {
			most, c.Binds = u.busy, u.name
		}
	}
	return c
}

// Summary returns the totals that a program's manifest carries.
func (r *Report) Summary() *isa.Cost {
	return &isa.Cost{Cycles: int64(r.Total.Cycles + 0.5), MACs: r.Total.MACs, DRAMRead: r.Total.Read, DRAMWrite: r.Total.Written}
}

// Top returns the n of a list that take most time, most first; all of them for n <= 0.
func Top(list []Cost, n int) []Cost {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y Cost) int { return cmp.Compare(y.Cycles, x.Cycles) })
	if n > 0 && n < len(list) {
		list = list[:n]
	}
	return list
}
