package op

func controlDefs() []Def { return nil }
