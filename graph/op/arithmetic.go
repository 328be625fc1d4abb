package op

func arithmeticDefs() []Def { return nil }
