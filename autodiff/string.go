package autodiff

func stringRules() []Rule {
	return append(noGrad("operands are strings", "StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch"),
		noGrad("operands are strings or integers", "TfIdfVectorizer")...)
}
