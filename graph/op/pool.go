package op

func poolDefs() []Def { return nil }
