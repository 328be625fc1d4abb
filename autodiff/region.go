package autodiff

// regionRules: aligned pooling of regions is differentiated as gathers and products, also with respect to the
// regions, between the positions where interpolation has kinks and numbers of points change.
func regionRules() []Rule {
	return append(append(noGrad("results are indices of boxes", "NonMaxSuppression"), noGrad("results are integers", "ImageDecoder")...), Rule{Name: "RoiAlign", Kind: Decomposed})
}
