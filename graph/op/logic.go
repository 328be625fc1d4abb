package op

func logicDefs() []Def { return nil }
