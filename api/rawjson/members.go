// Package rawjson finds the members of encoded JSON objects without decoding their
// values: the store and lists read thousands of objects for one answer, of which they need
// a few values. It expects what encoding/json accepts, and does not check it: for other
// input the results are unspecified, but it neither panics nor reads beyond the end.
package rawjson

import "bytes"

// Members calls fn with the name and the encoded value of each member of the object raw, in
// their order, until fn returns false. Names are as they are encoded, without their quotation
// marks. The slices belong to raw. It returns false if raw is not an object, if an object is
// cut off, or if fn returned false.
func Members(raw []byte, fn func(name, value []byte) bool) bool {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	if i = space(raw, i+1); i < len(raw) && raw[i] == '}' {
		return true
	}
	for i < len(raw) && raw[i] == '"' {
		name := i
		if i = text(raw, i); i > len(raw) {
			return false
		}
		end := i - 1
		if i = space(raw, i); i >= len(raw) || raw[i] != ':' {
			return false
		}
		value := space(raw, i+1)
		if i = after(raw, value); i > len(raw) || i == value || !fn(raw[name+1:end], raw[value:i:i]) {
			return false
		}
		if i = space(raw, i); i < len(raw) && raw[i] == '}' {
			return true
		}
		if i >= len(raw) || raw[i] != ',' {
			return false
		}
		i = space(raw, i+1)
	}
	return false
}

// Member returns the encoded value of the first member with the name, which must not need
// escaping, or nil.
func Member(raw []byte, name string) (value []byte) {
	Members(raw, func(n, v []byte) bool {
		if string(n) == name {
			value = v
		}
		return value == nil
	})
	return value
}

// Text returns the text of an encoded string; false if it is something else, or has
// characters that are escaped.
func Text(value []byte) (string, bool) {
	n := len(value)
	if n < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return "", false
	}
	return string(value[1 : n-1]), true
}

// space returns the index of the first character from i on that is not white space.
func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// after returns the index behind the value that begins at i, beyond the end of raw if the
// value is cut off.
func after(raw []byte, i int) int {
	if i >= len(raw) {
		return len(raw) + 1
	}
	switch raw[i] {
	case '"':
		return text(raw, i)
	case '{', '[':
		return nested(raw, i)
	}
	for i < len(raw) && raw[i] != ',' && raw[i] != '}' && raw[i] != ']' && raw[i] > ' ' {
		i++
	}
	return i
}

// text is after for a string.
func text(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			break
		}
		if i += n; !escaped(raw, i) {
			return i + 1
		}
	}
	return len(raw) + 1
}

// escaped reports whether an odd number of backslashes precedes i.
func escaped(raw []byte, i int) bool {
	n := i
	for n > 0 && raw[n-1] == '\\' {
		n--
	}
	return (i-n)%2 == 1
}

// nested is after for an object or an array.
func nested(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = text(raw, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(raw) + 1
}
