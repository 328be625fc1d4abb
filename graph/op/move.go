package op

func moveDefs() []Def { return nil }
