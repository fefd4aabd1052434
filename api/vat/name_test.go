package vat

import "testing"

func TestNamesDiffer(t *testing.T) {
	for _, c := range []struct {
		registered, customer string
		want                 bool
	}{
		{"ACME SA", "acme", false},
		{"SAS ACME CLOUD", "Acme-Cloud", false},
		{"ACME CLOUD S.R.L.", "acmecloud", false},
		{"MÜLLER & SÖHNE GMBH", "Mueller und Soehne", false},
		{"GROẞHANDEL WEISS KG", "Weiß", false},
		{"EXAMPLE HOLDING B.V.||EXAMPLE", "Example", false},
		{"Société Générale", "SOCIETE GENERALE", false},
		{"ACME SA", "Zenith GmbH", true},
		{"JEAN DUPONT", "acme", true},
		{"GLOBEX LTD", "Initech Ltd", true}, // a legal form in common
		{"SA", "AG", true},                  // nothing but legal forms
		{"ΑΛΦΑ ΑΕ", "Alpha", false},         // another script
		{"АЛФА ООД", "БЕТА ЕООД", true},
		{"", "acme", false}, // not disclosed
		{"ACME SA", "", false},
		{"--", "acme", false},
	} {
		if got := NamesDiffer(c.registered, c.customer); got != c.want {
			t.Errorf("NamesDiffer(%q, %q) = %v, want %v", c.registered, c.customer, got, c.want)
		}
	}
}
