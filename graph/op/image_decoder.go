package op

import (
	"bytes"
	"errors"
	"image"
	_ "image/jpeg" // registers the format
	_ "image/png"

	"gradtool/graph"
)

// decoderDefs defines the operator that reads image files.
func decoderDefs() []Def {
	return []Def{
		{Name: "ImageDecoder", Facts: DataDependent, Infer: inferImageDecoder, Eval: evalImageDecoder, Samples: []Sample{
			{In: []Arg{bytesOf(pnmSample)}},
			{Name: "blue first", In: []Arg{bytesOf(pnmSample)}, Attrs: []*graph.Attr{graph.StringAttr("pixel_format", "BGR")}},
			{Name: "grey", In: []Arg{bytesOf(pnmSample)}, Attrs: []*graph.Attr{graph.StringAttr("pixel_format", "Grayscale")}},
			{Name: "broken", In: []Arg{bytesOf("P6\n2 2\n255\nabc")}},
		}},
	}
}

// pnmSample is an image of 2 by 1 pixels.
const pnmSample = "P6\n# two pixels\n2 1\n255\n\x01\x02\x03\xfd\xfe\xff"

func bytesOf(s string) Arg {
	v := make([]float64, len(s))
	for i := range v {
		v[i] = float64(s[i])
	}
	return TV(graph.Uint8, []int{len(s)}, v...)
}

// pixelFormat returns the channels of the result, as indices among red, green and blue; one -1 stands for grey.
func pixelFormat(n *graph.Node) ([]int, bool) {
	switch n.Str("pixel_format", "RGB") {
	case "RGB":
		return []int{0, 1, 2}, true
	case "BGR":
		return []int{2, 1, 0}, true
	case "Grayscale":
		return []int{-1}, true
	}
	return nil, false
}

func inferImageDecoder(c *InferCtx) error {
	channels, ok := pixelFormat(c.Node)
	if !ok {
		return c.Errorf("pixel_format %q: want RGB, BGR or Grayscale", c.Node.Str("pixel_format", ""))
	}
	c.SetType(0, graph.TensorOf(graph.Uint8, graph.Shape{graph.Unknown(), graph.Unknown(), graph.Known(int64(len(channels)))}))
	return nil
}

// errImageFormat says that a file is of a format that is not decoded here.
var errImageFormat = errors.New("decodes JPEG, PNG, BMP without compression and binary PNM; the operand is none of these")

// evalImageDecoder gives the empty image for a broken file, as the standard has it.
func evalImageDecoder(c *EvalCtx) error {
	channels, ok := pixelFormat(c.Node)
	if !ok {
		return c.Errorf("pixel_format %q: want RGB, BGR or Grayscale", c.Node.Str("pixel_format", ""))
	}
	data := make([]byte, c.In[0].Len())
	for i := range data {
		data[i] = byte(c.In[0].I64[i])
	}
	img, err := decodeImage(data)
	if errors.Is(err, errImageFormat) {
		return c.Errorf("%v", err)
	}
	if err != nil {
		img = &pixels{}
	}
	y := NewArray(graph.Uint8, []int{img.height, img.width, len(channels)}, false)
	for i := range img.height * img.width {
		rgb := img.rgb[3*i : 3*i+3]
		for j, k := range channels {
			if k < 0 {
				y.I64[i] = int64(luma(rgb))
				continue
			}
			y.I64[len(channels)*i+j] = int64(rgb[k])
		}
	}
	c.Set(0, y)
	return nil
}

// luma is the brightness by ITU-R BT.601, in fixed point.
func luma(rgb []byte) byte {
	return byte((19595*int(rgb[0]) + 38470*int(rgb[1]) + 7471*int(rgb[2]) + 1<<15) >> 16)
}

// pixels is a decoded image, red, green and blue for each pixel, row by row.
type pixels struct {
	width, height int
	rgb           []byte
}

// maxPixels bounds what a file of a few bytes can make us allocate.
const maxPixels = 1 << 28

func newPixels(width, height int) (*pixels, error) {
	if width < 0 || height < 0 || height > 0 && width > maxPixels/height {
		return nil, errors.New("too large")
	}
	return &pixels{width, height, make([]byte, 3*width*height)}, nil
}

func decodeImage(data []byte) (*pixels, error) {
	switch {
	case bytes.HasPrefix(data, []byte("BM")):
		return decodeBMP(data)
	case bytes.HasPrefix(data, []byte("P5")), bytes.HasPrefix(data, []byte("P6")):
		return decodePNM(data)
	case bytes.HasPrefix(data, []byte("\xff\xd8")), bytes.HasPrefix(data, []byte("\x89PNG")):
	default:
		return nil, errImageFormat
	}
	cfg, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := newPixels(cfg.Width, cfg.Height)
	if err != nil {
		return nil, err
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if ycc, ok := img.(*image.YCbCr); ok {
		out.fromYCbCr(ycc)
		return out, nil
	}
	b := img.Bounds()
	for y := range out.height {
		for x := range out.width {
			r, g, bl, _ := img.At(b.Min.X+x, b.Min.Y+y).RGBA()
			copy(out.rgb[3*(y*out.width+x):], []byte{byte(r >> 8), byte(g >> 8), byte(bl >> 8)})
		}
	}
	return out, nil
}
