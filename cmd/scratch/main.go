package main

import (
	"fmt"
	"os"
	"strings"

	"gradtool/autodiff"
	"gradtool/autodiff/loss"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
)

func run(in, out string, lossSpec string, wrt string, sym bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("PANIC %v", r)
		}
	}()
	m, c, err := onnxio.Open(in, onnxio.ReadOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	if sym {
		for _, v := range m.Graph.Inputs {
			for i := range v.Type.Shape {
				v.Type.Shape[i] = graph.Sym(fmt.Sprintf("%s_d%d", v.Name, i))
			}
		}
	}
	if err := op.Inline(m, nil); err != nil {
		return err
	}
	if err := m.Graph.Sort(); err != nil {
		return err
	}
	if err := op.Upgrade(m); err != nil {
		return err
	}
	info, err := op.Infer(m)
	if err != nil {
		return err
	}
	opt := autodiff.GradOptions{Seeds: lossSpec == ""}
	if lossSpec != "" {
		s, err := loss.Parse(lossSpec)
		if err != nil {
			return err
		}
		opt.Loss = &s
	}
	if wrt == "inputs" {
		opt.Wrt = append(autodiff.FloatInputs(m), autodiff.Params(m, autodiff.FloatOutputs(m))...)
	}
	if _, err := autodiff.Gradient(m, info, opt); err != nil {
		return err
	}
	v, err := op.LowestOpset(m)
	if err != nil {
		return err
	}
	if err := op.SetOpset(m, v); err != nil {
		return err
	}
	return onnxio.WriteFile(out, m)
}

func main() {
	sym := os.Args[4] == "sym"
	for _, a := range os.Args[5:] {
		in, out, _ := strings.Cut(a, ":")
		err := run(in, out, os.Args[1], os.Args[2], sym)
		fmt.Println(in, "->", err)
	}
}
