package op

import (
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"slices"
)

var errCutShort = errors.New("cut short")

// decodeBMP reads a bitmap of 24 or 32 bits a pixel without compression (BITMAPINFOHEADER).
func decodeBMP(data []byte) (*pixels, error) {
	if len(data) < 54 {
		return nil, errCutShort
	}
	u32 := func(at int) int { return int(int32(binary.LittleEndian.Uint32(data[at:]))) }
	start, width, height := u32(10), u32(18), u32(22)
	bits, compression := int(binary.LittleEndian.Uint16(data[28:])), u32(30)
	if bits != 24 && bits != 32 || compression != 0 {
		return nil, errImageFormat
	}
	upward := height > 0 // the usual order: the last row first
	if !upward {
		height = -height
	}
	img, err := newPixels(width, height)
	if err != nil {
		return nil, err
	}
	bytesEach := bits / 8
	stride := (width*bytesEach + 3) &^ 3
	if start < 0 || start > len(data) || (len(data)-start)/max(stride, 1) < height {
		return nil, errCutShort
	}
	for y := range height {
		row := y
		if upward {
			row = height - 1 - y
		}
		for x := range width {
			p := data[start+row*stride+x*bytesEach:]
			copy(img.rgb[3*(y*width+x):], []byte{p[2], p[1], p[0]})
		}
	}
	return img, nil
}

// decodePNM reads a binary PGM (P5) or PPM (P6) file with values of one byte.
func decodePNM(data []byte) (*pixels, error) {
	at := 2
	number := func() int {
		n, digits := 0, 0
		for comment := false; at < len(data) && digits < 10; at++ {
			switch b := data[at]; {
			case comment:
				comment = b != '\n'
			case b >= '0' && b <= '9':
				n, digits = 10*n+int(b-'0'), digits+1
			case digits > 0:
				return n
			case b == '#':
				comment = true
			}
		}
		return -1
	}
	width, height, top := number(), number(), number()
	if width < 0 || height < 0 || top <= 0 {
		return nil, errCutShort
	}
	if top != 255 {
		return nil, errImageFormat
	}
	at++ // one white space
	img, err := newPixels(width, height)
	if err != nil {
		return nil, err
	}
	channels := 1
	if data[1] == '6' {
		channels = 3
	}
	if at > len(data) || len(data)-at < channels*width*height {
		return nil, errCutShort
	}
	for i := range img.rgb {
		img.rgb[i] = data[at+i*channels/3]
	}
	return img, nil
}

// fromYCbCr converts what a JPEG file holds. Halved chroma is interpolated so that the centres of
// pixels lie at quarters between those of the stored ones, 0.5 rounded down and up in turn, as the standard asks for (the
// default of libjpeg, jdsample.c).
func (p *pixels) fromYCbCr(img *image.YCbCr) {
	cw, ch := p.width, p.height
	switch img.SubsampleRatio {
	case image.YCbCrSubsampleRatio420:
		cw, ch = (p.width+1)/2, (p.height+1)/2
	case image.YCbCrSubsampleRatio422:
		cw = (p.width + 1) / 2
	case image.YCbCrSubsampleRatio444:
	default: // rare: the nearest stored value
		for i := range p.width * p.height {
			x, y := i%p.width, i/p.width
			r, g, b, _ := img.At(img.Rect.Min.X+x, img.Rect.Min.Y+y).RGBA()
			copy(p.rgb[3*i:], []byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)})
		}
		return
	}
	chroma := func(plane []byte) []byte {
		rows := make([][]int, ch)
		for y := range rows {
			rows[y] = make([]int, cw)
			for x := range rows[y] {
				rows[y][x] = int(plane[y*img.CStride+x])
			}
		}
		return upsample(rows, p.width, p.height)
	}
	cb, cr := chroma(img.Cb), chroma(img.Cr)
	for i := range p.width * p.height {
		r, g, b := color.YCbCrToRGB(img.Y[i/p.width*img.YStride+i%p.width], cb[i], cr[i])
		copy(p.rgb[3*i:], []byte{r, g, b})
	}
}

// upsample enlarges rows of chroma to width by height, along each axis that is halved. Sums along both axes are
// rounded once, in sixteenths.
func upsample(rows [][]int, width, height int) []byte {
	halvedX, halvedY := len(rows) > 0 && len(rows[0]) < width, len(rows) < height
	out := make([]byte, 0, width*height)
	scale := 1
	if halvedY {
		scale = 4
	}
	for y := range height {
		row := rows[min(y, len(rows)-1)]
		if halvedY {
			near := y / 2
			far := min(max(near-1+2*(y%2), 0), len(rows)-1)
			row = slices.Clone(rows[near])
			for x := range row {
				row[x] = 3*row[x] + rows[far][x]
			}
		}
		for x := range width {
			v, unit, round := row[x*len(row)/max(width, 1)], scale, scale/2
			if halvedX {
				near := x / 2
				far := min(max(near-1+2*(x%2), 0), len(row)-1)
				v, unit = 3*row[near]+row[far], 4*scale
				round = unit/2 - 1 + x%2
				if halvedY {
					round = unit/2 - x%2
				}
			}
			out = append(out, byte((v+round)/unit))
		}
	}
	return out
}
