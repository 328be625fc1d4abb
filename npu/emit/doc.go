// Package emit turns kernels, cut into tiles, into instructions of the reference machine: one list that is right when
// executed one instruction after the other.
//
// A tile of an operand is the box of its buffer that the tile of the loops touches, brought on chip in the buffer's own
// order, so that a DMA transfer runs along DRAM; instructions then read it with whatever strides the access has. Places on
// chip are taken from a pool that hands out memory in turn, so that what is freed is reused late and a transfer into it
// rarely has to wait for its last reader.
package emit
