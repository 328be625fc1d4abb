package op

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
)

// TestDecodeImage reads one picture in every format and compares pixels; JPEG loses a little.
func TestDecodeImage(t *testing.T) {
	const width, height = 13, 9
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, color.RGBA{byte(100 + 3*x), byte(200 - 4*y), byte(50 + 2*(x+y)), 255})
		}
	}
	encode := func(f func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	pnm := []byte("P6\n13 9\n# a comment\n255\n")
	bmp := append([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x0d\x00\x00\x00\x09\x00\x00\x00\x01\x00\x18\x00"), make([]byte, 24)...)
	for y := range height {
		for x := range width {
			c, up := img.RGBAAt(x, y), img.RGBAAt(x, height-1-y)
			pnm = append(pnm, c.R, c.G, c.B)
			bmp = append(bmp, up.B, up.G, up.R)
		}
		bmp = append(bmp, 0) // rows end at multiples of 4 bytes
	}
	for _, c := range []struct {
		name string
		data []byte
		off  int
	}{
		{"png", encode(func(b *bytes.Buffer) error { return png.Encode(b, img) }), 0},
		{"pnm", pnm, 0},
		{"bmp", bmp, 0},
		{"jpeg", encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, &jpeg.Options{Quality: 100}) }), 3},
	} {
		got, err := decodeImage(c.data)
		if err != nil || got.width != width || got.height != height {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, v := range got.rgb {
			p := img.RGBAAt(i/3%width, i/3/width)
			if want := []byte{p.R, p.G, p.B}[i%3]; int(v)-int(want) > c.off || int(want)-int(v) > c.off {
				t.Errorf("%s: element %d is %d, want %d", c.name, i, v, want)
				break
			}
		}
		for cut := range len(c.data) { // broken files are errors, never worse
			if got, err := decodeImage(c.data[:cut]); err == nil && len(got.rgb) != 3*width*height {
				t.Errorf("%s cut to %d bytes: %d bytes of pixels", c.name, cut, len(got.rgb))
			}
		}
	}
}
