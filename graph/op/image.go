package op

func imageDefs() []Def { return nil }
