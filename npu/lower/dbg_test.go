package lower_test
import ("testing";"fmt";"gradtool/graph/op";"gradtool/npu/lower";"gradtool/npu/machine")
func TestDbg(t *testing.T){ m,_:=machine.Builtin("ref-edge"); for _,d:=range op.All(){ if d.Name=="ReduceL2" {g,_,_:=op.SampleModel(d,d.Samples[0],1,""); r,err:=lower.Model(g,lower.Options{Machine:m}); t.Log(err); for _,i:=range r.List { fmt.Printf("%s %+v\n",i.Op,i.Args)}}}}
