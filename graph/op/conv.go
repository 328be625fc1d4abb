package op

func convDefs() []Def { return nil }
