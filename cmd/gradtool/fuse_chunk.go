package main

import (
	"strconv"
	"strings"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/size"
)

// chunkPass computes the loss tail in pieces.
func chunkPass(opt fuse.Chunking, res **fuse.ChunkResult) pass.Pass {
	return pass.Pass{
		Name: "chunk", Doc: "with --chunk: compute logits, their cross entropy and gradient piece by piece",
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			info, err := c.Info(m)
			if err != nil {
				return false, err
			}
			opt.Allow = c.Allow
			*res, err = fuse.Chunk(m, info, opt)
			return *res != nil && len((*res).Done) > 0, err
		},
	}
}

// chunking returns what --chunk says.
func (s *session) chunking() (fuse.Chunking, error) {
	var c fuse.Chunking
	var err error
	if c.Dims, err = s.dims(); err != nil {
		return c, err
	}
	way, n, sized := strings.Cut(s.String("chunk"), "=")
	if c.Way, err = fuse.ParseWay(way); err != nil {
		return c, usagef("--chunk %v", err)
	}
	if sized {
		if c.Size, err = strconv.ParseInt(n, 10, 64); err != nil || c.Size < 1 || c.Way == fuse.Best {
			return c, usagef("--chunk %q: want rows=N or classes=N with N of at least 1", s.String("chunk"))
		}
	}
	return c, nil
}

// chunk divides the loss tails of m, and reports whether any was.
func (s *session) chunk(m *graph.Model) (bool, error) {
	c, err := s.chunking()
	if err != nil {
		return false, err
	}
	var res *fuse.ChunkResult
	if err := s.runPasses(m, []pass.Pass{pass.Sort(), pass.Upgrade(), pass.Infer(), chunkPass(c, &res)}); err != nil {
		return false, err
	}
	type entry struct {
		Node   string `json:"node"`
		By     string `json:"by"`
		Size   int64  `json:"size"`
		Pieces string `json:"pieces"`
		Logits string `json:"logits_bytes"`
		Before string `json:"peak_before"`
		After  string `json:"peak_after"`
	}
	list, left := []entry{}, []string{}
	for _, d := range res.Done {
		list = append(list, entry{d.Node, d.Way.String(), d.Size, d.Pieces.String(), d.Logits.String(), d.Peak[0].String(), d.Peak[1].String()})
		bytes := func(d graph.Dim) string { return size.Bytes(int64(dimNumber(d, c.Dims))) }
		s.summaryf("%s in %s pieces of %d %s; it needs about %s, was %s", d.Node, d.Pieces, d.Size, d.Way, bytes(d.Peak[1]), bytes(d.Peak[0]))
	}
	for _, x := range res.Left {
		left = append(left, x.String())
		if s.Bool("explain") || len(res.Done) == 0 {
			s.notef("not in pieces: %s", x)
		}
	}
	if len(res.Done) == 0 && len(left) == 0 {
		s.notef("not in pieces: there is no softmax cross entropy with the gradient of its logits")
	}
	s.report.set("chunks", list)
	s.report.set("whole", left)
	if len(res.Done) == 0 {
		return false, nil
	}
	err = s.runPasses(m, []pass.Pass{opsetPass(0)})
	removeUnread(m)
	return true, err
}
