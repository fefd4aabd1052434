package vat

import (
	"strings"
	"testing"
)

// valid are numbers that their sources (see rule) or their owners publish, and the form
// in which they are returned.
var valid = []struct{ country, number, want string }{
	{"AT", "ATU13585627", "ATU13585627"},
	{"AT", "U 1358 5627", "ATU13585627"},
	{"BE", "0428.759.497", "BE0428759497"},
	{"BG", "BG175074752", "BG175074752"},
	{"CY", "CY-10259033P", "CY10259033P"},
	{"CZ", "CZ 25123891", "CZ25123891"},
	{"DE", "de136,695976", ""},
	{"DE", "de136 695 976", "DE136695976"},
	{"DK", "DK 13585628", "DK13585628"},
	{"EE", "100931558", "EE100931558"},
	{"ES", "B-58378431", "ESB58378431"},
	{"ES", "54362315K", "ES54362315K"},
	{"ES", "X2482300W", "ESX2482300W"},
	{"ES", "ESJ99216582", "ESJ99216582"},
	{"FI", "FI 20774740", "FI20774740"},
	{"FR", "Fr 40 303 265 045", "FR40303265045"},
	{"FR", "23334175221", "FR23334175221"},
	{"FR", "K7399859412", "FRK7399859412"},
	{"FR", "FRDE334175221", "FRDE334175221"},
	{"MC", "FR 53 0000 04605", "FR53000004605"},
	{"GB", "GB 980 7806 84", "GB980780684"},
	{"GR", "EL 094259216", "EL094259216"},
	{"HR", "HR33392005961", "HR33392005961"},
	{"HU", "HU-12892312", "HU12892312"},
	{"IE", "IE 6433435F", "IE6433435F"},
	{"IE", "IE 6433435OA", "IE6433435OA"},
	{"IE", "8D79739I", "IE8D79739I"},
	{"IT", "IT 00743110157", "IT00743110157"},
	{"LT", "119511515", "LT119511515"},
	{"LT", "LT 100001919017", "LT100001919017"},
	{"LU", "LU 150 274 42", "LU15027442"},
	{"LV", "LV 4000 3521 600", "LV40003521600"},
	{"MT", "MT 1167-9112", "MT11679112"},
	{"NL", "NL4495445B01", ""},
	{"NL", "NL004495445B01", "NL004495445B01"},
	{"NL", "NL123456789B13", "NL123456789B13"}, // of a natural person, since 2020
	{"PL", "PL 8567346215", "PL8567346215"},
	{"PT", "PT 501 964 843", "PT501964843"},
	{"RO", "RO 185 472 90", "RO18547290"},
	{"SE", "SE 556188840401", "SE556188840401"},
	{"SI", "SI 5022 3054", "SI50223054"},
	{"SK", "SK 202 274 96 19", "SK2022749619"},
	{"CH", "CHE-107.787.577 IVA", "CHE107787577IVA"},
	{"NO", "NO 995 525 828 MVA", "NO995525828MVA"},
}

func TestNumber(t *testing.T) {
	for _, c := range valid {
		got, err := Number(c.country, c.number)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("Number(%s, %q) = %q, %v; want %q", c.country, c.number, got, err, c.want)
		}
	}
}

// Of each number with a check digit, another last digit is refused: the rules find every
// error in a single digit.
func TestCheckDigits(t *testing.T) {
	known := map[string]bool{}
	for _, c := range valid {
		if c.want == "" {
			continue
		}
		known[Territory(c.country)] = true
		at := strings.LastIndexAny(c.want, "0123456789")
		if c.country == "NL" {
			at = strings.IndexByte(c.want, 'B') - 1
		}
		if c.country == "SE" {
			at -= 2
		}
		wrong := []byte(c.want)
		wrong[at] = '0' + (wrong[at]-'0'+1)%10
		if got, err := Number(c.country, string(wrong)); err == nil || !strings.Contains(err.Error(), "check digits") {
			t.Errorf("Number(%s, %q) = %q, %v; want an error about check digits", c.country, wrong, got, err)
		}
	}
	for country := range rules {
		if !known[country] {
			t.Errorf("no valid number of %s is tested", country)
		}
	}
}

func TestRefusedNumbers(t *testing.T) {
	for _, c := range []struct{ country, number, want string }{
		{"DE", "", "form"},
		{"DE", "DE", "form"},
		{"DE", "DE13669597", "form"},
		{"DE", "DE1366959760", "form"},
		{"DE", "ATU13585627", "of country AT"},
		{"AT", "DE136695976", "of country DE"},
		{"FR", "DE136695976", "of country DE"},
		{"FR", "DE334175221", "of country DE"}, // would be a French one, with the prefix
		{"AT", "EL094259216", "of country GR"},
		{"DE", "DE１３６695976", "form"},
		{"DE", strings.Repeat("1", 1000), "32"},
		{"ES", "I2345678A", "check digits"},
		{"US", "12-3456789", "not known"},
		{"xx", "1", "not known"},
	} {
		if got, err := Number(c.country, c.number); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Number(%s, %q) = %q, %v; want an error with %q", c.country, c.number, got, err, c.want)
		}
	}
}

func TestCountries(t *testing.T) {
	if n := len(strings.Fields(countries)); n != 249 {
		t.Errorf("countries = %d, want the 249 of ISO 3166-1", n)
	}
	if n := len(strings.Fields(members)); n != 27 {
		t.Errorf("members of the EU = %d, want 27", n)
	}
	for _, m := range append(strings.Fields(members), "MC") {
		if !KnownCountry(m) || !Union(m) || !Checked(m) {
			t.Errorf("%s: KnownCountry %v, Union %v, Checked %v; want all true", m, KnownCountry(m), Union(m), Checked(m))
		}
	}
	for _, none := range []string{"", "D", "de", "EL", "EU", "XX", "DEU", "E A", " D", "D "} {
		if KnownCountry(none) || Union(none) {
			t.Errorf("%q is a known country or of the EU, want neither", none)
		}
	}
	for _, outside := range []string{"GB", "CH", "NO", "US"} {
		if !KnownCountry(outside) || Union(outside) {
			t.Errorf("%s: KnownCountry %v, Union %v; want a country that is not in the EU", outside, KnownCountry(outside), Union(outside))
		}
	}
}

// FuzzNumber checks that any input is answered, and that what is accepted is accepted
// again in the form that was returned.
func FuzzNumber(f *testing.F) {
	for _, c := range valid {
		f.Add(c.country, c.number)
	}
	f.Add("DE", strings.Repeat("9", 64))
	f.Add("IE", "+*")
	f.Fuzz(func(t *testing.T, country, number string) {
		got, err := Number(country, number)
		if err != nil {
			if got != "" {
				t.Fatalf("Number(%q, %q) = %q and error %v, want no number", country, number, got, err)
			}
			return
		}
		if again, err := Number(country, got); err != nil || again != got {
			t.Fatalf("Number(%q, %q) = %q, %v; want %q again", country, got, again, err, got)
		}
	})
}
