package vat

import (
	"fmt"
	"regexp"
	"strings"
)

// rule is how VAT numbers of a country are formed. Formats and check digits are those of
// "VIES – VAT Validation Routines" and of the questions and answers on the site of VIES
// (https://ec.europa.eu/taxation_customs/vies/#/faq, Q11), and for other countries of
// their tax offices: GB, HMRC's VATREC; CH, the Federal Statistical Office's UID
// (https://www.bfs.admin.ch/bfs/en/home/registers/enterprise-register/enterprise-identification.html);
// NO, the Brønnøysund Register Centre's organisation number.
type rule struct {
	prefix string // of the number, where it is not the country's code
	form   *regexp.Regexp
	// check reports whether the check digits are right; nil: there are none, or they are
	// not published for all forms.
	check func(number string) bool
}

func form(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

var rules = map[string]rule{
	"AT": {"", form(`U\d{8}`), austria},
	"BE": {"", form(`[01]\d{9}`), func(n string) bool { return 97-int(value(n[:8])%97) == int(value(n[8:])) }},
	"BG": {"", form(`\d{9,10}`), bulgaria},
	"CY": {"", form(`[0134569]\d{7}[A-Z]`), cyprus},
	"CZ": {"", form(`\d{8,10}`), czechia},
	"DE": {"", form(`[1-9]\d{8}`), mod11And10},
	"DK": {"", form(`[1-9]\d{7}`), func(n string) bool { return weighted(n, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0 }},
	"EE": {"", form(`10\d{7}`), func(n string) bool { return weighted(n, 3, 7, 1, 3, 7, 1, 3, 7, 1)%10 == 0 }},
	"ES": {"", form(`[0-9A-Z]\d{7}[0-9A-Z]`), spain},
	"FI": {"", form(`\d{8}`), func(n string) bool { return weighted(n, 7, 9, 10, 5, 8, 4, 2, 1)%11 == 0 }},
	"FR": {"", form(`[0-9A-HJ-NP-Z]{2}\d{9}`), france},
	"GB": {"", form(`\d{9}|\d{12}|GD[0-4]\d\d|HA[5-9]\d\d`), britain},
	"GR": {"EL", form(`\d{9}`), func(n string) bool {
		return weighted(n, 256, 128, 64, 32, 16, 8, 4, 2)%11%10 == digit(n, 8)
	}},
	"HR": {"", form(`\d{11}`), mod11And10},
	"HU": {"", form(`\d{8}`), func(n string) bool { return weighted(n, 9, 7, 3, 1, 9, 7, 3, 1)%10 == 0 }},
	"IE": {"", form(`\d{7}[A-W][A-IW]?|\d[A-Z+*]\d{5}[A-W]`), ireland},
	"IT": {"", form(`\d{11}`), luhn},
	"LT": {"", form(`\d{7}1\d|\d{10}1\d`), lithuania},
	"LU": {"", form(`\d{8}`), func(n string) bool { return value(n[:6])%89 == value(n[6:]) }},
	"LV": {"", form(`\d{11}`), func(n string) bool {
		return n[0] <= '3' || weighted(n, 9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1)%11 == 3 // up to 3: a person's
	}},
	"MT": {"", form(`[1-9]\d{7}`), func(n string) bool { return weighted(n, 3, 4, 6, 7, 8, 9, 10, 1)%37 == 0 }},
	"NL": {"", form(`\d{9}B\d\d`), netherlands},
	"PL": {"", form(`\d{10}`), func(n string) bool { return weighted(n, 6, 5, 7, 2, 3, 4, 5, 6, 7)%11 == digit(n, 9) }},
	"PT": {"", form(`[1-9]\d{8}`), func(n string) bool {
		return (11-weighted(n, 9, 8, 7, 6, 5, 4, 3, 2)%11)%11%10 == digit(n, 8)
	}},
	"RO": {"", form(`[1-9]\d{1,9}`), romania},
	"SE": {"", form(`\d{10}(?:0[1-9]|[1-8]\d|9[0-4])`), func(n string) bool { return luhn(n[:10]) }},
	"SI": {"", form(`[1-9]\d{7}`), func(n string) bool {
		c := 11 - weighted(n, 8, 7, 6, 5, 4, 3, 2)%11
		return c != 11 && c%10 == digit(n, 7)
	}},
	"SK": {"", form(`[1-9]\d[2-47-9]\d{7}`), func(n string) bool { return value(n)%11 == 0 }},

	"CH": {"", form(`E\d{9}(?:MWST|TVA|IVA)?`), func(n string) bool {
		return (11-weighted(n[1:], 5, 4, 3, 2, 7, 6, 5, 4)%11)%11 == digit(n, 9)
	}},
	"NO": {"", form(`\d{9}(?:MVA)?`), func(n string) bool { return weighted(n, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0 }},
}

// maxNumber is longer than any number with the characters that separate its parts.
const maxNumber = 32

// separators are left out of numbers. Ireland's may contain + and *.
var separators = strings.NewReplacer(" ", "", ".", "", "-", "", "/", "")

// Checked reports whether Number knows the numbers of a country.
func Checked(country string) bool {
	_, known := rules[Territory(country)]
	return known
}

// Number returns a VAT number of a country in the form in which VIES and invoices have
// it: with the country's prefix, in capital letters and without separators. The prefix
// may be left out. Errors state what is wrong: the number belongs to another country,
// has another form, or its check digits are wrong; or the country is not Checked.
func Number(country, number string) (string, error) {
	r, known := rules[Territory(country)]
	if !known {
		return "", fmt.Errorf("VAT numbers of country %q are not known", country)
	}
	prefix := r.prefix
	if prefix == "" {
		prefix = Territory(country)
	}
	if len(number) > maxNumber {
		return "", fmt.Errorf("the VAT number has %d characters, want at most %d", len(number), maxNumber)
	}
	given := separators.Replace(strings.ToUpper(number))
	n, own := strings.CutPrefix(given, prefix)
	if r.form.MatchString(given) && !r.form.MatchString(n) { // its first letters only resemble the prefix
		n = given
	}
	// French numbers may begin with any two letters, also those of another country.
	if other := countryOf(given); !own && other != "" && other != Territory(country) {
		return "", fmt.Errorf("VAT number %q is of country %s, want one of %s", given, other, country)
	}
	if !r.form.MatchString(n) {
		return "", fmt.Errorf("VAT number %q does not have the form of one of country %s", given, country)
	}
	if r.check != nil && !r.check(n) {
		return "", fmt.Errorf("VAT number %q: the check digits are wrong", given)
	}
	return prefix + n, nil
}

// countryOf returns the country whose prefix and form a number has, or "".
func countryOf(number string) string {
	if len(number) < 2 {
		return ""
	}
	for country, r := range rules {
		prefix := r.prefix
		if prefix == "" {
			prefix = country
		}
		if rest, has := strings.CutPrefix(number, prefix); has && r.form.MatchString(rest) {
			return country
		}
	}
	return ""
}
