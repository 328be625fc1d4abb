package op

func contribDefs() []Def { return nil }
