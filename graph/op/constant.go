package op

func constantDefs() []Def { return nil }
