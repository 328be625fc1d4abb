package main

import (
	"errors"
	"strconv"
	"strings"

	"gradtool/fuse/batch"
	"gradtool/graph"
	"gradtool/graph/pass"
)

// byBatch reports whether --chunk asks for parts of the batch.
func (s *session) byBatch() bool {
	way, _, _ := strings.Cut(s.String("chunk"), ",")
	way, _, _ = strings.Cut(way, "=")
	return s.IsSet("chunk") && way == "batch"
}

// maxParts limits how many copies of a graph --chunk batch makes.
const maxParts = 1024

// batchOptions returns what --chunk batch[=K][,dim=NAME] says; no K is 0.
func (s *session) batchOptions() (opt batch.Options, err error) {
	way, dim, named := strings.Cut(s.String("chunk"), ",")
	_, k, sized := strings.Cut(way, "=")
	if sized {
		opt.Parts, err = strconv.Atoi(k)
	}
	name, ok := strings.CutPrefix(dim, "dim=")
	if err != nil || sized && (opt.Parts < 2 || opt.Parts > maxParts) || named && (!ok || name == "") {
		return opt, usagef("--chunk %q: want batch=K with K from 2 to %d, and maybe ,dim=NAME", s.String("chunk"), maxParts)
	}
	opt.Dim = name
	return opt, nil
}

// batchPass computes the graph by parts of its batch, in as many as the model of memory says if opt has no number.
func batchPass(opt batch.Options, dims map[string]int64, res **batch.Result) pass.Pass {
	return pass.Pass{
		Name: "batch", Doc: "with --chunk batch: compute the graph by parts of its batch",
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			info, err := c.Info(m)
			if err != nil {
				return false, err
			}
			if opt.Parts == 0 {
				opt.Parts = batch.Parts(m, opt.Dim, func(v *graph.Value) float64 {
					if !v.Type.IsTensor() {
						return 0
					}
					return dimNumber(v.Type.Shape.Size(), dims) * float64(v.Type.Elem.Bits()) / 8
				})
			}
			*res, err = batch.Split(m, info, opt)
			if errors.Is(err, batch.ErrTwice) {
				return false, hint(err, "for other parts, start from the graph that \"fuse --chunk\" was given")
			}
			if errors.Is(err, batch.ErrNoBatch) || errors.Is(err, batch.ErrNothing) {
				if list := inputSymbols(m); len(list) > 0 {
					return false, hint(err, "--chunk batch=K,dim=NAME names the batch; the dimensions of the inputs are %s", strings.Join(list, ", "))
				}
				return false, hint(err, "\"gradtool info\" shows the inputs: a leading axis of known size, two or more, or one that has a name can be divided")
			}
			return err == nil, err
		},
	}
}

// chunkBatch divides m by its batch.
func (s *session) chunkBatch(m *graph.Model) (bool, error) {
	opt, err := s.batchOptions()
	if err != nil {
		return false, err
	}
	dims, err := s.dims()
	if err != nil {
		return false, err
	}
	var res *batch.Result
	if err := s.runPasses(m, []pass.Pass{pass.Sort(), pass.Upgrade(), pass.Infer(), batchPass(opt, dims, &res)}); err != nil {
		return false, err
	}
	s.summaryf("%s in %d parts of the batch %s; %s for the whole batch, %s joined", count(res.Divided, "node"), res.Parts, res.Axis,
		count(len(res.Borders), "node"), count(len(res.Joined), "value"))
	type border struct {
		Node string `json:"node"`
		Why  string `json:"why"`
	}
	list := []border{}
	for _, x := range res.Borders {
		list = append(list, border{x.Node, x.Why})
		if s.Bool("explain") && !s.quiet {
			s.say("whole: ", x.Node+": "+x.Why)
		}
	}
	r := s.report
	r.set("batch", res.Axis)
	r.set("parts", res.Parts)
	r.set("divided", res.Divided)
	r.set("whole", list)
	r.set("joined", append([]string{}, res.Joined...))
	err = s.runPasses(m, []pass.Pass{opsetPass(0)})
	removeUnread(m)
	return true, err
}
