package vat

import (
	"slices"
	"strings"
	"unicode"
)

// NamesDiffer reports whether the name that a country has for a VAT number clearly differs
// from the customer's. Names are alike if they have a word in common, or if one without
// its spaces is a part of the other; capitals, diacritics, punctuation and legal forms do not
// count. A name that is unknown, or written in another script, does not differ.
func NamesDiffer(registered, customer string) bool {
	a, b := wordsOf(registered), wordsOf(customer)
	if len(a) == 0 || len(b) == 0 || latin(a) != latin(b) {
		return false
	}
	common := slices.ContainsFunc(a, func(word string) bool { return len([]rune(word)) >= 3 && slices.Contains(b, word) })
	x, y := strings.Join(a, ""), strings.Join(b, "")
	return !common && !strings.Contains(x, y) && !strings.Contains(y, x)
}

// wordsOf returns the words of a name that distinguish it, or all of them if it has no such
// words.
func wordsOf(name string) []string {
	all := strings.FieldsFunc(folded(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	distinct := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return slices.Contains(legalForms, word) })
	if len(distinct) == 0 {
		return all
	}
	return distinct
}

func latin(words []string) bool {
	return !slices.ContainsFunc([]rune(strings.Join(words, "")), func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) })
}

// legalForms are common words of legal forms in the EU, folded.
var legalForms = strings.Fields("ab ad ag aps as asbl bv bvba co company corp doo eg eood ev gmbh inc kft kg kgaa limited llc lp lta ltd mbh nv nyrt oe ohg ood oy oyj " +
	"plc rt sa sarl sas sca sci scrl se sia sl slu sp spa spol spzoo srl sro uab ug und the and et de van")

// plain are letters and what they count as, in pairs. Two letters for an umlaut count as one.
var plain = strings.NewReplacer("ä", "a", "à", "a", "á", "a", "â", "a", "ã", "a", "å", "a", "ā", "a", "ă", "a", "ą", "a", "æ", "a",
	"ç", "c", "ć", "c", "č", "c", "ċ", "c", "ď", "d", "đ", "d", "è", "e", "é", "e", "ê", "e", "ë", "e", "ē", "e", "ė", "e", "ę", "e", "ě", "e",
	"ģ", "g", "ġ", "g", "ħ", "h", "ì", "i", "í", "i", "î", "i", "ï", "i", "ī", "i", "į", "i", "ķ", "k", "ĺ", "l", "ļ", "l", "ľ", "l", "ł", "l",
	"ñ", "n", "ń", "n", "ņ", "n", "ň", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ö", "o", "ő", "o", "ø", "o", "œ", "o", "ŕ", "r", "ř", "r",
	"ś", "s", "ş", "s", "š", "s", "ș", "s", "ß", "s", "ť", "t", "ţ", "t", "ț", "t", "ù", "u", "ú", "u", "û", "u", "ü", "u", "ū", "u", "ů", "u", "ű", "u", "ų", "u",
	"ý", "y", "ÿ", "y", "ź", "z", "ż", "z", "ž", "z", "ae", "a", "oe", "o", "ue", "u", "ss", "s", ".", "", "'", "", "’", "")

func folded(name string) string { return plain.Replace(strings.ToLower(name)) }
