package op

func indexDefs() []Def { return nil }
