package legal

import "fmt"

// Op is a scalar operation of a nest.
type Op uint8

// Operations. Values are float or int32; truth values are int32, 0 or 1.
const (
	None Op = iota
	ConstOp
	Iota
	Mov
	Cast
	Half
	BFloat
	Neg
	Abs
	Sign
	Floor
	Ceil
	Round
	Trunc
	Sqrt
	Rsqrt
	Rcp
	Exp
	Expm1
	Log
	Log1p
	Sin
	Cos
	Tan
	Asin
	Acos
	Atan
	Sinh
	Cosh
	Tanh
	Asinh
	Acosh
	Atanh
	Sigmoid
	Erf
	Not
	Add
	Sub
	Mul
	Div
	Rem
	Max
	Min
	Pow
	And
	Or
	Xor
	Shl
	Shr
	Sar
	Eq
	Ne
	Lt
	Le
	Select
	Sum
	Prod
	ReduceMax
	ReduceMin
	numOps
)

// ops describes the operations.
var ops = [numOps]struct {
	name string
	args int
	doc  string
}{
	ConstOp: {"const", 0, "the immediate"}, Iota: {"iota", 0, "the index of a dimension"}, Mov: {"mov", 1, "x"},
	Cast: {"cast", 1, "x in the other type; floats are cut off towards zero"},
	Half: {"half", 1, "x rounded to the nearest float16"}, BFloat: {"bfloat", 1, "x rounded to the nearest bfloat16"},
	Neg: {"neg", 1, "-x"}, Abs: {"abs", 1, "|x|"}, Sign: {"sign", 1, "-1, 0 or 1"}, Floor: {"floor", 1, ""}, Ceil: {"ceil", 1, ""},
	Round: {"round", 1, "half to even"}, Trunc: {"trunc", 1, ""}, Sqrt: {"sqrt", 1, ""}, Rsqrt: {"rsqrt", 1, ""}, Rcp: {"rcp", 1, "1/x"},
	Exp: {"exp", 1, ""}, Expm1: {"expm1", 1, ""}, Log: {"log", 1, ""}, Log1p: {"log1p", 1, ""}, Sin: {"sin", 1, ""}, Cos: {"cos", 1, ""},
	Tan: {"tan", 1, ""}, Asin: {"asin", 1, ""}, Acos: {"acos", 1, ""}, Atan: {"atan", 1, ""}, Sinh: {"sinh", 1, ""}, Cosh: {"cosh", 1, ""},
	Tanh: {"tanh", 1, ""}, Asinh: {"asinh", 1, ""}, Acosh: {"acosh", 1, ""}, Atanh: {"atanh", 1, ""}, Sigmoid: {"sigmoid", 1, ""},
	Erf: {"erf", 1, ""}, Not: {"not", 1, "of a truth value"}, Add: {"add", 2, ""}, Sub: {"sub", 2, ""}, Mul: {"mul", 2, ""},
	Div: {"div", 2, "of integers: towards zero, 0 for x/0"}, Rem: {"rem", 2, "with the sign of x; of integers 0 for y = 0"},
	Max: {"max", 2, ""}, Min: {"min", 2, ""}, Pow: {"pow", 2, ""}, And: {"and", 2, ""}, Or: {"or", 2, ""}, Xor: {"xor", 2, ""},
	Shl: {"shl", 2, ""}, Shr: {"shr", 2, "zeros from the left"}, Sar: {"sar", 2, "the sign from the left"}, Eq: {"eq", 2, ""}, Ne: {"ne", 2, ""},
	Lt: {"lt", 2, ""}, Le: {"le", 2, ""}, Select: {"select", 3, "y where x, else z"}, Sum: {"sum", 1, ""}, Prod: {"prod", 1, ""},
	ReduceMax: {"rmax", 1, ""}, ReduceMin: {"rmin", 1, ""},
}

// String returns the operation's name in printed programs.
func (o Op) String() string {
	if o >= numOps || ops[o].name == "" {
		return fmt.Sprintf("op%d", uint8(o))
	}
	return ops[o].name
}

// Reduces reports whether o is a reduction.
func (o Op) Reduces() bool { return o >= Sum && o < numOps }

// Fold returns the operation that combines two partial results of a reduction.
func (o Op) Fold() Op {
	switch o {
	case Prod:
		return Mul
	case ReduceMax:
		return Max
	case ReduceMin:
		return Min
	}
	return Add
}

// Compares reports whether o gives a truth value from two operands of any type.
func (o Op) Compares() bool { return o >= Eq && o <= Le }

// Special reports whether o is a function that takes much longer than a product.
func (o Op) Special() bool { return o >= Sqrt && o <= Erf || o == Pow }
