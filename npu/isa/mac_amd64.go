package isa

// macTile is macTileGo with SSE instructions, which every amd64 has.
//
//go:noescape
func macTile(c *[tileRows * tileCols]float32, a, b *float32, k int)
