//go:build !amd64

package isa

import "unsafe"

// macTile is macTileGo.
func macTile(c *[tileRows * tileCols]float32, a, b *float32, k int) {
	macTileGo(c, unsafe.Slice(a, k*tileRows), unsafe.Slice(b, k*tileCols), k)
}
