package prune

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// ruleCase is a graph with what Run makes of it. rule is what must have been applied; "" if nothing may have changed.
type ruleCase struct{ rule, in, want string }

var ruleCases = []ruleCase{
	// Arithmetic.
	{"mul-one", "g (float[2,3] x) => (float[2,3] y) <float c = {1}> { a = Mul(c, x) y = Abs(a) }", "y = Abs (x)"},
	{"mul-one", "g (float[N,3] x) => (float[N,3] y) <float[1,3] c = {1, 1, 1}> { a = Mul(x, c) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[1,3] x) => (float[2,3] y) <float[2,3] c = {1, 1, 1, 1, 1, 1}> { y = Mul(x, c) }", ""},
	{"", "g (float x) => (float[1] y) <float[1] c = {1}> { y = Mul(x, c) }", ""},
	{"", "g (float[N] x) => (float[M] y) <float[1] c = {2}> { y = Mul(x, c) }", ""},
	{"div-one", "g (float[2] x) => (float[2] y) <float c = {1}> { a = Div(x, c) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x) => (float[2] y) <float c = {1}> { y = Div(c, x) }", ""},
	{"pow-one", "g (float[2] x) => (float[2] y) <float c = {1}> { a = Pow(x, c) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (int64[2] x) => (int64[2] y) <float c = {1}> { y = Pow(x, c) }", ""},
	{"add-zero", "g (int64[2] x) => (int64[2] y) <int64 c = {0}> { a = Add(x, c) y = Abs(a) }", "y = Abs (x)"},
	{"add-zero", "g (float[2] x) => (float[2] y) <float c = {-0.0}> { a = Add(x, c) y = Abs(a) }", "y = Abs (x)"},
	{"add-zero", "g (float[2] x) => (float[2] y) <float c = {0}> { e = Exp(x) a = Add(e, c) y = Neg(a) }", "e = Exp (x)\ny = Neg (e)"},
	{"", "g (float[2] x) => (float[2] y) <float c = {0}> { y = Add(x, c) }", ""},
	{"sub-zero", "g (float[2] x) => (float[2] y) <float c = {0}> { a = Sub(x, c) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x) => (float[2] y) <float c = {-0.0}> { y = Sub(x, c) }", ""},
	{"mul-zero-integers", "g (int64[2] x, int64[1] k) => (int64[2] y) <int64[2] c = {0, 0}> { a = Mul(x, c) y = Add(a, k) }", "y = Add (c, k)"},
	{"", "g (float[3] x) => (float[3] y) <float z = {0}> { y = Mul(x, z) }", ""},
	{"neg-neg", "g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Abs(b) }", "y = Abs (x)"},
	{"add-neg", "g (float[2] x, float[2] z) => (float[2] y) { a = Neg(x) y = Add(a, z) }", "y = Sub (z, x)"},
	{"", "g (float[2] x, float[2] z) => (float[2] y, float[2] a) { a = Neg(x) y = Add(a, z) }", ""},
	{"sub-neg", "g (float[2] x, float[2] z) => (float[2] y) { a = Neg(x) y = Sub(z, a) }", "y = Add (z, x)"},
	{"mul-neg-neg", "g (float[2] x, float[2] z) => (float[2] y) { a = Neg(x) b = Neg(z) y = Mul(a, b) }", "y = Mul (x, z)"},
	{"neg-times-constant", "g (float[2] x) => (float[2] y) { c = Constant<value = float {3}>() a = Neg(x) y = Mul(a, c) }", "y = Mul (x)"},
	{"neg-of-product", "g (float[2] x) => (float[2] y) { c = Constant<value = float {3}>() a = Mul(x, c) y = Neg(a) }", "y = Mul (x)"},
	{"sum-of-one", "g (float[2] x) => (float[2] y) { a = Sum(x) y = Abs(a) }", "y = Abs (x)"},
	{"mean-of-one", "g (float[2] x) => (float[2] y) { a = Mean(x) y = Abs(a) }", "y = Abs (x)"},
	{"max-of-one", "g (float[2] x) => (float[2] y) { a = Max(x) y = Abs(a) }", "y = Abs (x)"},
	{"min-of-one", "g (float[2] x) => (float[2] y) { a = Min(x) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x, float[2] z) => (float[2] y) { y = Sum(x, z) }", ""},
	{"max-same", "g (float[2] x) => (float[2] y) { a = Max(x, x) y = Abs(a) }", "y = Abs (x)"},
	{"min-same", "g (float[2] x) => (float[2] y) { a = Min(x, x) y = Abs(a) }", "y = Abs (x)"},
	{"relu-relu", "g (float[2] x) => (float[2] y) { a = Relu(x) y = Relu(a) }", "y = Relu (x)"},
	{"abs-abs", "g (float[2] x) => (float[2] y) { a = Abs(x) y = Abs(a) }", "y = Abs (x)"},
	{"ceil-ceil", "g (float[2] x) => (float[2] y) { a = Ceil(x) y = Ceil(a) }", "y = Ceil (x)"},
	{"floor-floor", "g (float[2] x) => (float[2] y) { a = Floor(x) y = Floor(a) }", "y = Floor (x)"},
	{"round-round", "g (float[2] x) => (float[2] y) { a = Round(x) y = Round(a) }", "y = Round (x)"},
	{"sign-sign", "g (float[2] x) => (float[2] y) { a = Sign(x) y = Sign(a) }", "y = Sign (x)"},
	{"", "g (float[2] x) => (float[2] y) { a = Floor(x) y = Ceil(a) z = Abs(y) }", "a = Floor (x)\ny = Ceil (a)"},
	{"abs-neg", "g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }", "y = Abs (x)"},
	{"clip-open", "g (float[2] x) => (float[2] y) { a = Clip(x) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x) => (float[2] y) <float c = {1}> { y = Clip(x, \"\", c) }", ""},

	// Gradients.
	{"gradient-add-zero", "g (float[2] x) => (float[2] y) { [z] z = Constant<value = float {0}>() # meta: \"gradtool.role\": \"backward\"\n[a] a = Add(x, z) # meta: \"gradtool.role\": \"backward\"\ny = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x) => (float[2] y) { [z] z = Constant<value = float {0}>()\n[a] y = Add(x, z) # meta: \"gradtool.role\": \"backward\"\n}", ""},
	{"gradient-mul-zero", "g (float[2] x) => (float[2] y) { [z] z = Constant<value = float[2] {0, 0}>() # meta: \"gradtool.role\": \"backward\"\n[a] y = Mul(x, z) # meta: \"gradtool.role\": \"backward\"\n}", ""},
	{"gradient-div-zero", "g (float[2] x) => (float[2] y) { [z] z = Constant<value = float[2] {0, 0}>() # meta: \"gradtool.role\": \"backward\"\n[a] y = Div(z, x) # meta: \"gradtool.role\": \"backward\"\n}", ""},
	{"gradient-add-pads", "g (float[N,3] x, float[N,2] z) => (float[N,5] y) <int64[4] p = {0, 2, 0, 0}, int64[4] q = {0, 0, 0, 3}> { a = Pad(x, p) b = Pad(z, q)\n[c] y = Add(b, a) # meta: \"gradtool.role\": \"backward\"\n}", "y = Concat <axis: int = 1> (z, x)"},
	{"", "g (float[N,3] x, float[N,2] z) => (float[N,5] y) <int64[4] p = {0, 2, 0, 0}, int64[4] q = {0, 0, 0, 3}> { a = Pad(x, p) b = Pad(z, q) y = Add(b, a) }", ""},
	{"", "g (float[N,3] x, float[N,3] z) => (float[N,5] y) <int64[4] p = {0, 2, 0, 0}, int64[4] q = {0, 0, 0, 2}> { a = Pad(x, p) b = Pad(z, q)\n[c] y = Add(b, a) # meta: \"gradtool.role\": \"backward\"\n}", ""},
	{"gradient-neg-difference", "g (float[2] x, float[2] z) => (float[2] y) { a = Sub(x, z)\n[b] y = Neg(a) # meta: \"gradtool.role\": \"backward\"\n}", "y = Sub (z, x)"},
	{"", "g (float[2] x, float[2] z) => (float[2] y) { a = Sub(x, z) y = Neg(a) }", ""},

	// Booleans and choices.
	{"not-not", "g (bool[2] x) => (bool[2] y) { a = Not(x) b = Not(a) y = Or(b, x) }", "y = Identity (x)"},
	{"and-true", "g (bool[2] x) => (bool[2] y) <bool c = {1}> { a = And(x, c) y = Not(a) }", "y = Not (x)"},
	{"or-false", "g (bool[2] x) => (bool[2] y) <bool c = {0}> { a = Or(c, x) y = Not(a) }", "y = Not (x)"},
	{"xor-false", "g (bool[2] x) => (bool[2] y) <bool c = {0}> { a = Xor(c, x) y = Not(a) }", "y = Not (x)"},
	{"and-false", "g (bool[2] x, bool[2] z) => (bool[2] y) <bool[2] c = {0, 0}> { a = And(x, c) y = Or(a, z) }", "y = Identity (z)"},
	{"or-true", "g (bool[2] x, bool[2] z) => (bool[2] y) <bool[2] c = {1, 1}> { a = Or(x, c) y = And(a, z) }", "y = Identity (z)"},
	{"", "g (bool[2] x) => (bool[2] y) <bool c = {0}> { y = And(x, c) }", ""},
	{"and-same", "g (bool[2] x) => (bool[2] y) { a = And(x, x) y = Not(a) }", "y = Not (x)"},
	{"or-same", "g (bool[2] x) => (bool[2] y) { a = Or(x, x) y = Not(a) }", "y = Not (x)"},
	{"where-same", "g (bool[2] c, float[2] x) => (float[2] y) { a = Where(c, x, x) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (bool[3,2] c, float[2] x) => (float[3,2] y) { y = Where(c, x, x) }", ""},
	{"where-true", "g (float[2] x, float[2] z) => (float[2] y) <bool c = {1}> { a = Where(c, x, z) y = Abs(a) }", "y = Abs (x)"},
	{"where-false", "g (float[2] x, float[2] z) => (float[2] y) <bool c = {0}> { a = Where(c, x, z) y = Abs(a) }", "y = Abs (z)"},
	{"", "g (float[1] x, float[2] z) => (float[2] y) <bool c = {1}> { y = Where(c, x, z) }", ""},
	{"where-not", "g (bool[2] c, float[2] x, float[2] z) => (float[2] y) { n = Not(c) y = Where(n, x, z) }", "y = Where (c, z, x)"},

	// Casts.
	{"cast-same", "g (float[2] x) => (float[2] y) { a = Cast<to = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"cast-like-same", "g (float[2] x, float[3] z) => (float[2] y) { a = CastLike(x, z) y = Abs(a) }", "y = Abs (x)"},
	{"cast-cast", "g (float16[2] x) => (float16[2] y) { a = Cast<to = 1>(x) b = Cast<to = 10>(a) y = Abs(b) }", "y = Abs (x)"},
	{"cast-cast", "g (int32[2] x) => (double[2] y) { a = Cast<to = 7>(x) y = Cast<to = 11>(a) }", "y = Cast <to: int = 11> (x)"},
	{"", "g (float[2] x) => (float[2] y) { a = Cast<to = 6>(x) y = Cast<to = 1>(a) }", ""},
	{"", "g (float[2] x) => (float[2] y) { a = Cast<to = 10>(x) y = Cast<to = 1>(a) }", ""},
	{"", "g (int64[2] x) => (int64[2] y) { a = Cast<to = 1>(x) y = Cast<to = 7>(a) }", ""},

	// Shapes.
	{"reshape-same", "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, -1}> { a = Reshape(x, s) y = Abs(a) }", "y = Abs (x)"},
	{"reshape-same", "g (float[N,3] x) => (float[N,3] y) { s = Shape(x) a = Reshape(x, s) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2,3] x, int64[2] s) => (float[2,3] y) { y = Reshape(x, s) }", ""},
	{"flatten-same", "g (float[N,3] x) => (float[N,3] y) { a = Flatten(x) y = Abs(a) }", "y = Abs (x)"},
	{"squeeze-none", "g (float[2,3] x) => (float[2,3] y) { a = Squeeze(x) y = Abs(a) }", "y = Abs (x)"},
	{"unsqueeze-none", "g (float[2,3] x) => (float[2,3] y) <int64[0] a = {}> { u = Unsqueeze(x, a) y = Abs(u) }", "y = Abs (x)"},
	{"expand-same", "g (float[N,3] x) => (float[N,3] y) <int64[2] s = {1, 3}> { a = Expand(x, s) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[1,3] x) => (float[2,3] y) <int64[2] s = {2, 3}> { y = Expand(x, s) }", ""},
	{"transpose-same", "g (float[2,1,3] x) => (float[2,1,3] y) { a = Transpose<perm = [0, 1, 2]>(x) y = Abs(a) }", "y = Abs (x)"},
	{"transpose-same", "g (float[1,1,3] x) => (float[1,1,3] y) { a = Transpose<perm = [1, 0, 2]>(x) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[3,3] x) => (float[3,3] y) { y = Transpose<perm = [1, 0]>(x) }", ""},
	{"transpose-transpose", "g (float[2,3,4] x) => (float[4,2,3] y) { a = Transpose<perm = [1, 2, 0]>(x) y = Transpose<perm = [1, 2, 0]>(a) }", "y = Transpose <perm: ints = [2, 0, 1]> (x)"},
	{"transpose-transpose", "g (float[2,3] x) => (float[2,3] y) { a = Transpose(x) b = Transpose(a) y = Abs(b) }", "y = Abs (x)"},
	{"transpose-unsqueeze", "g (float[N,4,5] x) => (float[N,1,4,5] y) <int64[1] a = {3}> { u = Unsqueeze(x, a) y = Transpose<perm = [0, 3, 1, 2]>(u) }", "y = Unsqueeze (x)"},
	{"", "g (float[N,4,5] x) => (float[N,1,5,4] y) <int64[1] a = {3}> { u = Unsqueeze(x, a) y = Transpose<perm = [0, 3, 2, 1]>(u) }", ""},
	{"transpose-reshape", "g (float[N,20] x) => (float[N,1,4,5] y) <int64[4] s = {-1, 4, 5, 1}> { u = Reshape(x, s) y = Transpose<perm = [0, 3, 1, 2]>(u) }", "y = Reshape (x)"},
	{"", "g (float[N,20] x) => (float[N,5,4] y) <int64[3] s = {-1, 4, 5}> { u = Reshape(x, s) y = Transpose<perm = [0, 2, 1]>(u) }", ""},
	{"reshape-transpose", "g (float[N,4,5,1] x) => (float[N,20] y) <int64[2] s = {0, -1}> { u = Transpose<perm = [0, 3, 1, 2]>(x) y = Reshape(u, s) }", "y = Reshape (x, s)"},
	{"", "g (float[N,4,5] x) => (float[N,20] y) <int64[2] s = {0, -1}> { u = Transpose<perm = [0, 2, 1]>(x) y = Reshape(u, s) }", ""},
	{"shape-of-elementwise", "g (float[?,3] x) => (int64[2] y) { a = Exp(x) y = Shape(a) }", "y = Shape (x)"},
	{"shape-of-alike", "g (float[N,M] x, float[M] z) => (int64[2] y) { a = Add(x, z) b = Softmax(a) y = Shape(b) }", "y = Shape (x)"},
	{"", "g (float[?,M] x, float[?,M] z) => (int64[2] y) { a = Add(x, z) y = Shape(a) }", ""},
	{"reshape-reshape", "g (float[4,6] x) => (float[8,3] y) <int64[3] s = {2, 2, 6}, int64[2] r = {8, 3}> { a = Reshape(x, s) y = Reshape(a, r) }", "y = Reshape (x, r)"},
	{"", "g (float[2,3,4] x) => (float[6,2,2] y) <int64[2] s = {6, 4}, int64[3] r = {0, 2, 2}> { a = Reshape(x, s) y = Reshape(a, r) }", ""},
	{"reshape-flatten", "g (float[4,2,3] x) => (float[8,3] y) <int64[2] r = {8, 3}> { a = Flatten(x) y = Reshape(a, r) }", "y = Reshape (x, r)"},
	{"reshape-squeeze", "g (float[1,4,6] x) => (float[8,3] y) <int64[1] s = {0}, int64[2] r = {8, 3}> { a = Squeeze(x, s) y = Reshape(a, r) }", "y = Reshape (x, r)"},
	{"reshape-unsqueeze", "g (float[4,6] x) => (float[8,3] y) <int64[1] s = {0}, int64[2] r = {8, 3}> { a = Unsqueeze(x, s) y = Reshape(a, r) }", "y = Reshape (x, r)"},
	{"flatten-reshape", "g (float[4,6] x) => (float[2,12] y) <int64[3] s = {2, 3, 4}> { a = Reshape(x, s) y = Flatten(a) }", "y = Reshape (x)"},
	{"squeeze-reshape", "g (float[4,6] x) => (float[24] y) <int64[2] s = {1, 24}, int64[1] k = {0}> { a = Reshape(x, s) y = Squeeze(a, k) }", "y = Reshape (x)"},
	{"unsqueeze-reshape", "g (float[4,6] x) => (float[1,24] y) <int64[1] s = {24}, int64[1] k = {0}> { a = Reshape(x, s) y = Unsqueeze(a, k) }", "y = Reshape (x)"},
	{"squeeze-squeeze", "g (float[1,2,1,3] x) => (float[2,3] y) <int64[1] s = {0}, int64[1] k = {1}> { a = Squeeze(x, s) y = Squeeze(a, k) }", "y = Squeeze (x)"},
	{"unsqueeze-unsqueeze", "g (float[2,3] x) => (float[1,2,1,3] y) <int64[1] s = {1}, int64[1] k = {0}> { a = Unsqueeze(x, s) y = Unsqueeze(a, k) }", "y = Unsqueeze (x)"},
	{"reshape-reshape-back", "g (float[N,6] x) => (float[N,6] y) <int64[1] s = {-1}, int64[2] r = {-1, 6}> { a = Reshape(x, s) b = Reshape(a, r) y = Abs(b) }", "y = Abs (x)"},
	{"squeeze-unsqueeze-back", "g (float[N,6] x) => (float[N,6] y) <int64[1] s = {0}> { a = Unsqueeze(x, s) b = Squeeze(a, s) y = Abs(b) }", "y = Abs (x)"},
	{"unsqueeze-squeeze-back", "g (float[1,6] x) => (float[1,6] y) <int64[1] s = {0}> { a = Squeeze(x, s) b = Unsqueeze(a, s) y = Abs(b) }", "y = Abs (x)"},

	// Moves.
	{"slice-all", "g (float[N,3] x) => (float[N,3] y) <int64[1] z = {0}, int64[1] i = {0}> { e = Shape<end = 1>(x) a = Slice(x, z, e, i) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[3] x) => (float[3] y) <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] i = {0}, int64[1] k = {-1}> { y = Slice(x, s, e, i, k) }", "y = Slice (x, s, e, i, s)"},
	{"slice-slice", "g (float[4,5] x) => (float[2,3] y) <int64[1] s = {1}, int64[1] e = {3}, int64[1] e2 = {4}, int64[1] i = {0}, int64[1] j = {1}> { a = Slice(x, s, e, i) y = Slice(a, s, e2, j) }", "y = Slice (x)"},
	{"pad-none", "g (float[2] x) => (float[2] y) <int64[2] p = {0, 0}> { a = Pad(x, p) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x) => (float[2] y) <int64[2] p = {1, -1}> { y = Pad(x, p) }", ""},
	{"tile-once", "g (float[2] x) => (float[2] y) <int64[1] r = {1}> { a = Tile(x, r) y = Abs(a) }", "y = Abs (x)"},
	{"concat-one", "g (float[2] x) => (float[2] y) { a = Concat<axis = 0>(x) y = Abs(a) }", "y = Abs (x)"},
	{"concat-empty", "g (float[2,3] x, float[0,3] e) => (float[2,3] y) { a = Concat<axis = 0>(x, e) y = Abs(a) }", "y = Abs (x)"},
	{"concat-concat", "g (float[2] x, float[3] z) => (float[7] y) { a = Concat<axis = 0>(x, z) y = Concat<axis = -1>(a, x) }", "y = Concat <axis: int = -1> (x, z, x)"},
	{"", "g (float[2,2] x) => (float[4,4] y) { a = Concat<axis = 0>(x, x) y = Concat<axis = 1>(a, a) }", ""},
	{"concat-split", "g (float[6] x) => (float[6] y) { a, b = Split<num_outputs = 2>(x) c = Concat<axis = 0>(a, b) y = Abs(c) }", "y = Abs (x)"},
	{"", "g (float[6] x) => (float[6] y) { a, b = Split<num_outputs = 2>(x) y = Concat<axis = 0>(b, a) }", ""},
	{"split-one", "g (float[6] x) => (float[6] y) { a = Split<num_outputs = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"dropout-off", "g (float[6] x) => (float[6] y) { a, m = Dropout(x) y = Abs(a) }", "y = Abs (x)"},
	{"dropout-off", "g (float[6] x, bool t) => (float[6] y) { r = Constant<value = float {0}>() a, m = Dropout(x, r, t) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[6] x) => (float[6] y, bool[6] m) { y, m = Dropout(x) }", ""},
	{"", "g (float[6] x, bool t) => (float[6] y) <float r = {0.5}> { y = Dropout(x, r, t) }", ""},

	{"slice-slice-axis", "g (float[8] x) => (float[2] y) <int64[1] s = {1}, int64[1] e = {5}, int64[1] e2 = {3}, int64[1] i = {0}> { a = Slice(x, s, e, i) y = Slice(a, s, e2, i) }", "y = Slice (x)"},
	{"slice-slice-axis", "g (float[N,8] x) => (float[M,4] y) <int64[1] s = {1}, int64[1] e = {9223372036854775807}, int64[2] f = {2, 4}, int64[2] t = {100, 8}, int64[1] i = {0}> { a = Slice(x, s, e, i) y = Slice(a, f, t) }", "y = Slice (x)"},
	{"", "g (float[8] x) => (float[2] y) <int64[1] s = {-5}, int64[1] e = {9}, int64[1] e2 = {3}, int64[1] i = {0}> { a = Slice(x, s, e, i) y = Slice(a, e2, e, i) }", ""},
	{"pad-pad", "g (float[N,2] x) => (float[M,4] y) <int64[4] p = {0, 1, 1, 0}, int64[2] q = {0, 1}, int64[1] i = {1}, float z = {0}> { a = Pad(x, p) y = Pad(a, q, z, i) }", "y = Pad (x, z)"},
	{"", "g (float[2] x) => (float[4] y) <int64[2] p = {0, 1}, float z = {1}> { a = Pad(x, p) y = Pad(a, p, z) }", ""},
	{"", "g (float[2] x) => (float[2] y) <int64[2] p = {0, 1}, int64[2] q = {0, -1}> { a = Pad(x, p) y = Pad(a, q) }", ""},
	{"split-concat", "g (float[N,2] x, float[N,3] z) => (float[N,2] y, float[N,3] v) <int64[2] s = {2, 3}> { a = Concat<axis = 1>(x, z) b, c = Split<axis = -1>(a, s) y = Abs(b) v = Abs(c) }", "y = Abs (x)\nv = Abs (z)"},
	{"", "g (float[N,2] x, float[N,3] z) => (float[N,3] y, float[N,2] v) <int64[2] s = {3, 2}> { a = Concat<axis = 1>(x, z) y, v = Split<axis = 1>(a, s) }", ""},
	{"", "g (float[N] x, float[M] z) => (float[P] y, float[Q] v) <int64[2] s = {3, 2}> { a = Concat<axis = 0>(x, z) y, v = Split<axis = 0>(a, s) }", ""},
	{"slice-concat", "g (float[N,2] x, float[N,3] z) => (float[N,2] y) <int64[1] s = {3}, int64[1] e = {9}, int64[1] i = {-1}> { a = Concat<axis = 1>(x, z) b = Slice(a, s, e, i) y = Abs(b) }", "b = Slice (z)\ny = Abs (b)"},
	{"slice-concat", "g (float[2,N] x, float[M,N] z) => (float[M,N] y) <int64[1] s = {2}, int64[1] e = {9223372036854775807}, int64[1] i = {0}> { a = Concat<axis = 0>(x, z) b = Slice(a, s, e, i) y = Abs(b) }", "y = Abs (z)"},
	{"slice-concat", "g (float[2,N] x, float[M,N] z) => (float[2,N] y) <int64[1] s = {0}, int64[1] e = {2}, int64[1] i = {0}> { a = Concat<axis = 0>(x, z) b = Slice(a, s, e, i) y = Abs(b) }", "y = Abs (x)"},
	{"", "g (float[N,2] x, float[N,3] z) => (float[N,2] y) <int64[1] s = {1}, int64[1] e = {3}, int64[1] i = {-1}> { a = Concat<axis = 1>(x, z) b = Slice(a, s, e, i) y = Abs(b) }", ""},
	{"", "g (float[N] x, float[3] z) => (float[M] y) <int64[1] s = {2}, int64[1] e = {5}, int64[1] i = {0}> { a = Concat<axis = 0>(x, z) b = Slice(a, s, e, i) y = Abs(b) }", ""},
	{"concat-slices", "g (float[N,8] x) => (float[N,5] y) <int64[1] s = {1}, int64[1] t = {4}, int64[1] e = {6}, int64[1] i = {1}> { a = Slice(x, s, t, i) b = Slice(x, t, e, i) y = Concat<axis = 1>(a, b) }", "y = Slice (x)"},
	{"concat-slices", "g (float[N,8] x) => (float[N,8] y) <int64[1] s = {0}, int64[1] t = {4}, int64[1] e = {9}, int64[1] i = {-2}> { a = Slice(x, s, t, i) b = Slice(x, t, e, i) y = Concat<axis = 0>(a, b) }", "y = Slice (x)"},
	{"", "g (float[N,8] x) => (float[N,4] y) <int64[1] s = {2}, int64[1] t = {4}, int64[1] e = {6}, int64[1] i = {1}> { a = Slice(x, s, t, i) b = Slice(x, t, e, i) y = Concat<axis = 1>(b, a) }", ""},
	{"", "g (float[N,8] x) => (float[M,8] y) <int64[1] s = {1}, int64[1] t = {4}, int64[1] e = {-1}, int64[1] i = {0}> { a = Slice(x, s, t, i) b = Slice(x, t, e, i) y = Concat<axis = 0>(a, b) }", ""},
	{"concat-filled", "g (float[2,4096] x) => (float[2,8192] y) <int64[2] s = {2, 2048}> { c = ConstantOfShape(s) y = Concat<axis = 1>(c, x, c) }", "y = Pad (x)"},
	{"", "g (float[2,4096] x) => (float[2,12288] y) <int64[2] s = {2, 2048}> { c = ConstantOfShape(s) y = Concat<axis = 1>(c, x, x, c) }", ""},
	{"", "g (float[2,4096] x) => (float[2,8192] y) <int64[2] s = {2, 2048}, float[1] k = {3}> { c = ConstantOfShape(s) d = ConstantOfShape<value = float[1] {1}>(s) y = Concat<axis = 1>(c, x, d) }", ""},
	{"gather-all", "g (float[N,3] x) => (float[N,3] y) <int64[3] i = {0, 1, 2}> { a = Gather<axis = 1>(x, i) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[N,4] x) => (float[N,3] y) <int64[3] i = {0, 1, 2}> { y = Gather<axis = 1>(x, i) }", ""},
	{"", "g (float[N,3] x) => (float[N,3] y) <int64[3] i = {0, 2, 1}> { y = Gather<axis = 1>(x, i) }", ""},
	{"maxpool-pad", "g (float[1,2,8,8] x) => (float[1,2,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 0, 0}, float v = {-inf}> { a = Pad(x, p, v) y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(a) }", "y = MaxPool <kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 0, 0]> (x)"},
	{"", "g (float[1,2,8,8] x) => (float[1,2,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 0, 0}> { a = Pad(x, p) y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(a) }", ""},
	{"", "g (float[1,2,8,8] x) => (float[1,2,9,9] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 0, 0}, float v = {-inf}> { a = Pad(x, p, v) y = MaxPool<kernel_shape = [1, 1]>(a) }", ""},
	{"scatter-all", "g (float[2,3] x, float[2,3] u) => (float[2,3] y) <int64[2,1] i = {0, 1}> { a = ScatterND(x, i, u) y = Abs(a) }", "y = Abs (u)"},
	{"", "g (float[3,3] x, float[2,3] u) => (float[3,3] y) <int64[2,1] i = {0, 1}> { y = ScatterND(x, i, u) }", ""},
	{"", "g (float[2,3] x, float[2,3] u) => (float[2,3] y) <int64[2,1] i = {0, 1}> { y = ScatterND<reduction = \"add\">(x, i, u) }", ""},
	{"scatter-elements-all", "g (float[2,3] x, float[2,3] u) => (float[2,3] y) <int64[2,3] i = {0, 1, 2, 0, 1, 2}> { a = ScatterElements<axis = 1>(x, i, u) y = Abs(a) }", "y = Abs (u)"},
	{"", "g (float[2,3] x, float[2,3] u) => (float[2,3] y) <int64[2,3] i = {0, 1, 2, 0, 2, 1}> { y = ScatterElements<axis = 1>(x, i, u) }", ""},
	{"", "g (float[3,3] x, float[2,3] u) => (float[3,3] y) <int64[2,3] i = {0, 0, 0, 1, 1, 1}> { y = ScatterElements(x, i, u) }", ""},
	{"scatter-filled", "g (float[2,3072] u) => (float[4,3072] y) <int64[2,1] i = {1, 2}, int64[2] s = {4, 3072}> { c = ConstantOfShape(s) y = ScatterND(c, i, u) }", "y = Pad (u)"},
	{"", "g (float[2,3072] u) => (float[4,3072] y) <int64[2,1] i = {2, 1}, int64[2] s = {4, 3072}> { c = ConstantOfShape(s) y = ScatterND(c, i, u) }", ""},

	// Repeated tensors.
	{"expand-operand-Mul", "g (float[N,3] x, float[1,3] z) => (float[N,3] y) { s = Shape(x) a = Expand(z, s) y = Mul(a, x) }", "y = Mul (z, x)"},
	{"expand-operand-Where", "g (bool[3] c, float[2,3] x, float z) => (float[2,3] y) <int64[2] s = {2, 3}> { a = Expand(c, s) b = Expand(z, s) y = Where(a, x, b) }", "y = Where (c, x, z)"},
	{"expand-through-Mul", "g (float[1,3] x, float[1,3] z) => (float[2,3] y) <int64[2] s = {2, 3}> { a = Expand(z, s) y = Mul(a, x) }", "Mul = Mul (z, x)\ny = Expand (Mul, s)"},
	{"", "g (float[N,3] x, float[1,3] z) => (float[N,3] y) { s = Shape(x) a = Expand(z, s) y = PRelu(a, x) }", ""},
	{"expand-through-Div", "g (float[2,1] x, float[2,3] z) => (float[2,3] y) <int64[2] s = {2, 3}, float c = {3}> { e = Expand(x, s) d = Div(e, c) y = Mul(d, z) }", "Div = Div (x, c)\ny = Mul (Div, z)"},
	{"expand-through-Neg", "g (float[N,1] x, float[N,M] z) => (float[N,M] y) { s = Shape(z) e = Expand(x, s) y = Neg(e) }", "s = Shape (z)\nNeg = Neg (x)\ny = Expand (Neg, s)"},
	{"", "g (float[2,1] x, float[3] c) => (float[2,3] y) <int64[2] s = {2, 3}> { e = Expand(x, s) y = Div(e, c) }", ""},
	{"", "g (float[2,1] x) => (float[2,3] y, float[2,3] e) <int64[2] s = {2, 3}> { e = Expand(x, s) y = Neg(e) }", ""},
	{"expand-expand", "g (float[1,3] x) => (float[4,2,3] y) <int64[2] s = {2, 3}, int64[3] t = {4, 1, 1}> { a = Expand(x, s) y = Expand(a, t) }", "y = Expand (x)"},
	{"reduce-max-expand", "g (float[1,3] x) => (float[3] y) <int64[3] s = {4, 2, 3}, int64[2] k = {0, 1}> { a = Expand(x, s) y = ReduceMax<keepdims = 0>(a, k) }", "y = Squeeze (x)"},
	{"reduce-min-expand", "g (float[3] x) => (float[1,3] y) <int64[2] s = {2, 3}, int64[1] k = {0}> { a = Expand(x, s) y = ReduceMin(a, k) }", "y = Unsqueeze (x)"},
	{"", "g (float[1,3] x) => (float[2] y) <int64[2] s = {2, 3}, int64[1] k = {1}> { a = Expand(x, s) y = ReduceMax<keepdims = 0>(a, k) }", ""},
	{"", "g (float[1,3] x, int64[2] s) => (float[1,3] y) <int64[1] k = {0}> { a = Expand(x, s) y = ReduceMax(a, k) }", ""},
	{"reduce-sum-expand", "g (int64[3] x) => (int64[3] y) <int64[2] s = {2, 3}, int64[1] k = {0}> { a = Expand(x, s) y = ReduceSum<keepdims = 0>(a, k) }", "y = Mul (x)"},
	{"", "g (float[3] x) => (float[3] y) <int64[2] s = {2, 3}, int64[1] k = {0}> { a = Expand(x, s) y = ReduceSum<keepdims = 0>(a, k) }", ""},

	// Products.
	{"matmul-add", "g (float[N,3] x) => (float[N,4] y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] b = {1, 2, 3, 4}> { a = MatMul(x, w) y = Add(b, a) }", "y = Gemm (x, w, b)"},
	{"", "g (float[N,3] x, float[N,4] b) => (float[N,4] y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { a = MatMul(x, w) y = Add(b, a) }", ""},
	{"", "g (float[N,3] x, float[4] b) => (float[N,4] y) <float[3,1] w = {1, 2, 3}> { a = MatMul(x, w) y = Add(b, a) }", ""},
	{"", "g (float[2,N,3] x, float[4] b) => (float[2,N,4] y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { a = MatMul(x, w) y = Add(b, a) }", ""},
	{"", "g (float16[N,3] x, float16[4] b, float16[3,4] w) => (float16[N,4] y) { a = MatMul(x, w) y = Add(b, a) }", ""},
	{"gemm-add", "g (float[N,3] x, float[1,4] b, float[4,3] w) => (float[N,4] y) { a = Gemm<transB = 1, beta = 0.5>(x, w) y = Add(b, a) }", "y = Gemm <transB: int = 1, beta: float = 1> (x, w, b)"},
	{"matmul-transposed", "g (float[N,3] x, float[N,4] w) => (float[3,4] y) { a = Transpose(x) y = MatMul(a, w) }", "y = Gemm <transA: int = 1> (x, w)"},
	{"", "g (float[N,3] x, float[4,3] w) => (float[N,4] y) { a = Transpose(w) y = MatMul(x, a) }", ""},
	{"", "g (float[2,N,3] x, float[N,4] w) => (float[2,3,4] y) { a = Transpose<perm = [0, 2, 1]>(x) y = MatMul(a, w) }", ""},
	{"gemm-transposed", "g (float[3,N] x, float[3,4] w, float[4] b) => (float[N,4] y) { a = Transpose(x) y = Gemm<beta = 0.5>(a, w, b) }", "y = Gemm <beta: float = 0.5, transA: int = 1> (x, w, b)"},
	{"", "g (float[3,N] x, float[4,3] w, float[4] b) => (float[N,4] y) { a = Transpose(x) y = Gemm<transB = 1>(a, w, b) }", ""},
	{"transpose-gemm", "g (float[N,3] x, float[N,4] w) => (float[4,3] y) { a = Gemm<transA = 1>(x, w) y = Transpose(a) }", "y = Gemm <transA: int = 1, transB: int = 0> (w, x)"},
	{"transpose-gemm", "g (float[N,3] x, float[4,3] w) => (float[4,N] y) { a = Gemm<transB = 1>(x, w) y = Transpose(a) }", "y = Gemm <transA: int = 0, transB: int = 1> (w, x)"},
	{"", "g (float[N,3] x, float[4,3] w) => (float[4,N] y) { a = Gemm<transB = 1, alpha = 0.3>(x, w) y = Transpose(a) }", ""},
	{"", "g (float[N,3] x, float[3,4] w) => (float[4,N] y) { a = Gemm(x, w) y = Transpose(a) }", ""},
	{"conv-add", "g (float[N,2,4,4] x, float[3,2,1,1] w) => (float[N,3,4,4] y) <float[3,1,1] b = {1, 2, 3}> { a = Conv(x, w) y = Add(b, a) }", "y = Conv (x, w)"},
	{"", "g (float[N,2,4,4] x, float[3,2,1,1] w, float[3,1,1] b) => (float[N,3,4,4] y) { a = Conv(x, w) y = Add(b, a) }", ""},
	{"", "g (float[N,2,4,3] x, float[3,2,1,1] w) => (float[N,3,4,3] y) <float[3] b = {1, 2, 3}> { a = Conv(x, w) y = Add(b, a) }", ""},

	{"mul-mul-integers", "g (int64[N,3] x) => (int64[N,3] y) <int64 c = {3}, int64[3] d = {5, 6, 7}> { a = Mul(c, x) y = Mul(a, d) }", "y = Mul (x)"},
	{"add-add-integers", "g (int32[N,3] x) => (int32[N,3] y) <int32 c = {3}, int32[3] d = {2147483647, 6, 7}> { a = Add(x, c) y = Add(d, a) }", "y = Add (x)"},
	{"", "g (float[N,3] x) => (float[N,3] y) <float c = {3}, float[3] d = {5, 6, 7}> { a = Mul(c, x) y = Mul(a, d) }", ""},
	{"", "g (int64[N,3] x, int64[N,3] z) => (int64[N,3] y) <int64 c = {3}> { a = Mul(c, x) y = Mul(a, z) }", ""},

	// Reductions.
	{"reduce-sum-none", "g (float[2] x) => (float[2] y) { a = ReduceSum<noop_with_empty_axes = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-mean-none", "g (float[2] x) => (float[2] y) { a = ReduceMean<noop_with_empty_axes = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-max-none", "g (float[2] x) => (float[2] y) { a = ReduceMax<noop_with_empty_axes = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-min-none", "g (float[2] x) => (float[2] y) { a = ReduceMin<noop_with_empty_axes = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-prod-none", "g (float[2] x) => (float[2] y) { a = ReduceProd<noop_with_empty_axes = 1>(x) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }", ""},
	{"reduce-sum-ones", "g (float[2,1] x) => (float[2,1] y) <int64[1] k = {1}> { a = ReduceSum(x, k) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-mean-ones", "g (float[2,1] x) => (float[2] y) <int64[1] k = {1}> { a = ReduceMean<keepdims = 0>(x, k) y = Abs(a) }", "a = Squeeze (x)\ny = Abs (a)"},
	{"reduce-max-ones", "g (float[2,1] x) => (float[2,1] y) <int64[1] k = {-1}> { a = ReduceMax(x, k) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-min-ones", "g (float[2,1] x) => (float[2,1] y) <int64[1] k = {1}> { a = ReduceMin(x, k) y = Abs(a) }", "y = Abs (x)"},
	{"reduce-prod-ones", "g (float[2,1] x) => (float[2,1] y) <int64[1] k = {1}> { a = ReduceProd(x, k) y = Abs(a) }", "y = Abs (x)"},
	{"", "g (float[2,N] x) => (float[2,1] y) <int64[1] k = {1}> { y = ReduceSum(x, k) }", ""},

	// Filled tensors.
	{"splat-Neg", "g () => (float[4096] n) <int64[1] s = {4096}> { c = ConstantOfShape<value = float[1] {3}>(s) n = Neg(c) }", "n = ConstantOfShape <value: tensor = float[1] {-3}>"},
	{"splat-Add", "g (float[N] x) => (float[N] n) { s = Shape(x) c = ConstantOfShape<value = float[1] {3}>(s) n = Add(c, c) }", "s = Shape (x)\nn = ConstantOfShape <value: tensor = float[1] {6}> (s)"},
	{"splat-Transpose", "g () => (float[64,128] n) <int64[2] s = {128, 64}> { c = ConstantOfShape(s) n = Transpose(c) }", "n = ConstantOfShape <value: tensor = float[1] {0}>"},
	{"splat-Concat", "g () => (float[8192] n) <int64[1] s = {4096}> { c = ConstantOfShape(s) n = Concat<axis = 0>(c, c) }", "n = ConstantOfShape <value: tensor = float[1] {0}>"},
	{"splat-operand-Mul", "g (float[N] x) => (float[N] y) { s = Shape(x) c = ConstantOfShape<value = float[1] {3}>(s) y = Mul(c, x) }", "y = Mul (x)"},
	{"splat-operand-Div", "g (float[4096] x) => (float[4096] y) <int64[1] s = {4096}> { c = ConstantOfShape<value = float[1] {3}>(s) y = Div(c, x) }", "y = Div (x)"},
	{"splat-operand-Add", "g (float[4096] x) => (float[4096] y) <int64[1] s = {4096}> { c = ConstantOfShape<value = float[1] {3}>(s) y = Add(x, c) }", "y = Add (x)"},
	{"", "g (float[1] x) => (float[4096] y) <int64[1] s = {4096}> { c = ConstantOfShape<value = float[1] {3}>(s) y = Mul(x, c) }", ""},
}

func parse(t *testing.T, body string) *graph.Model {
	t.Helper()
	m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]>` + body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return m
}

// computed lists the nodes of m that are no constants; operands that are constants are left out, as are names of nodes.
func computed(m *graph.Model) string {
	var out []string
	for n := range m.Graph.AllNodes() {
		if n.Is("Constant") {
			continue
		}
		c := &graph.Node{Op: n.Op, Out: n.Out, Attrs: n.Attrs}
		for _, v := range n.In {
			if v == nil || v.Def == nil || !v.Def.Is("Constant") {
				c.In = append(c.In, v)
			}
		}
		out = append(out, strings.TrimSuffix(c.String(), " ()"))
	}
	return strings.Join(out, "\n")
}

func TestRules(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range ruleCases {
		m, original := parse(t, c.in), inferred(t, c.in)
		frozen := func(*graph.Value) bool { return true }
		before := computed(m)
		s, err := Run(m, Options{Frozen: frozen})
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if err := graph.Verify(m); err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		if err := op.Verify(m); err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		if diff := agree(t, original, m, effects(s)); diff != "" {
			t.Errorf("rule %q on %s: %s", c.rule, c.in, diff)
		}
		want := c.want
		if c.rule == "" && want == "" {
			want = before
		}
		got := computed(m)
		applied := false
		for _, r := range s.Rules {
			tried[r.Name] = true
			applied = applied || r.Name == c.rule
		}
		if strings.TrimSuffix(got, " ()") != strings.TrimSuffix(want, " ()") || applied != (c.rule != "") {
			t.Errorf("rule %q on %s\ngot  %s\nwant %s\napplied %v", c.rule, c.in, got, want, s.Rules)
		}
	}
	for _, table := range Rules() {
		for _, r := range table {
			generated := strings.HasPrefix(r.Name, "splat-") || strings.HasPrefix(r.Name, "expand-operand-") || strings.HasPrefix(r.Name, "expand-through-") || strings.HasSuffix(r.Name, "-back")
			if !tried[r.Name] && !generated {
				t.Errorf("rule %s has no test", r.Name)
			}
		}
	}
}
