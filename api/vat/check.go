package vat

import "strings"

// The checks below are called with numbers that have the form of their country.

func digit(n string, i int) int { return int(n[i] - '0') }

// value returns the value of up to 18 decimal digits.
func value(n string) (v int64) {
	for i := range len(n) {
		v = v*10 + int64(n[i]-'0')
	}
	return v
}

// weighted returns the sum of the first digits times the weights.
func weighted(n string, weights ...int) (sum int) {
	for i, w := range weights {
		sum += digit(n, i) * w
	}
	return sum
}

// luhn is ISO/IEC 7812-1, annex B.
func luhn(n string) bool { return luhnSum(n, len(n)%2)%10 == 0 }

// luhnSum adds the digits, after doubling those whose position is odd or even.
func luhnSum(n string, doubled int) (sum int) {
	for i := range len(n) {
		d := digit(n, i)
		if i%2 == doubled {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return sum
}

// mod11And10 is MOD 11,10 of ISO/IEC 7064.
func mod11And10(n string) bool {
	check := 10
	for i := range len(n) - 1 {
		if check = (check + digit(n, i)) % 10; check == 0 {
			check = 10
		}
		check = check * 2 % 11
	}
	return (check+digit(n, len(n)-1))%10 == 1
}

func austria(n string) bool { return (luhnSum(n[1:8], 1)+4+digit(n, 8))%10 == 0 }

func bulgaria(n string) bool {
	if len(n) == 10 { // a person's
		return true
	}
	check := weighted(n, 1, 2, 3, 4, 5, 6, 7, 8) % 11
	if check == 10 {
		check = weighted(n, 3, 4, 5, 6, 7, 8, 9, 10) % 11 % 10
	}
	return check == digit(n, 8)
}

func cyprus(n string) bool {
	sum := 0
	for i := range 8 {
		if d := digit(n, i); i%2 == 0 {
			sum += []int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21}[d]
		} else {
			sum += d
		}
	}
	return n[8] == byte('A'+sum%26)
}

func czechia(n string) bool { // longer ones are persons'
	return len(n) > 8 || (11-weighted(n, 8, 7, 6, 5, 4, 3, 2)%11)%10 == digit(n, 7)
}

func spain(n string) bool {
	const letters = "TRWAGMYFPDXBNJZSQVHLCKE"
	first, rest, last := n[0], n[1:8], n[8]
	switch {
	case first >= '0' && first <= '9':
		return last == letters[value(n[:8])%23]
	case strings.IndexByte("XYZ", first) >= 0:
		return last == letters[value(string('0'+first-'X')+rest)%23]
	case strings.IndexByte("KLM", first) >= 0:
		return last == letters[value(rest)%23]
	case strings.IndexByte("ABCDEFGHJNPQRSUVW", first) < 0:
		return false
	}
	check := (10 - luhnSum(rest, 0)%10) % 10
	return last == byte('0'+check) || last == "JABCDEFGHI"[check]
}

// france checks the company's number, which Monaco's have not, and the two characters
// before it where they are digits.
func france(n string) bool {
	if company := n[2:]; !strings.HasPrefix(company, "000") && !luhn(company) {
		return false
	}
	digits := n[0] <= '9' && n[1] <= '9'
	return !digits || value(n[:2]) == value(n[2:]+"12")%97
}

func britain(n string) bool {
	if n[0] > '9' { // government departments and health authorities
		return true
	}
	sum := weighted(n, 8, 7, 6, 5, 4, 3, 2) + int(value(n[7:9]))
	return sum%97 == 0 || (sum+55)%97 == 0
}

func ireland(n string) bool {
	digits, check, extra := n[:7], n[7], 0
	if n[1] < '0' || n[1] > '9' {
		digits = "0" + n[2:7] + n[:1]
	}
	if len(n) == 9 && n[8] != 'W' {
		extra = int(n[8]-'A'+1) * 9
	}
	return check == "WABCDEFGHIJKLMNOPQRSTUV"[(weighted(digits, 8, 7, 6, 5, 4, 3, 2)+extra)%23]
}

func lithuania(n string) bool {
	check := func(from int) (sum int) {
		for i := range len(n) - 1 {
			sum += digit(n, i) * (1 + (i+from)%9)
		}
		return sum % 11
	}
	c := check(0)
	if c == 10 {
		c = check(2) % 10
	}
	return c == digit(n, len(n)-1)
}

// netherlands accepts the numbers of legal persons, and those that others have since
// 2020, which are checked with MOD 97-10 of ISO/IEC 7064.
func netherlands(n string) bool {
	if weighted(n, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0 {
		return true
	}
	rest := 0
	for _, c := range "NL" + n {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}

func romania(n string) bool {
	padded := strings.Repeat("0", 10-len(n)) + n
	return weighted(padded, 7, 5, 3, 2, 1, 7, 5, 3, 2)*10%11%10 == digit(padded, 9)
}
