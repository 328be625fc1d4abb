package op

func stringDefs() []Def { return nil }
