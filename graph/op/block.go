package op

func blockDefs() []Def { return nil }
