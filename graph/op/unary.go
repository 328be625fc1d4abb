package op

func unaryDefs() []Def { return nil }
