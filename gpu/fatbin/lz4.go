package fatbin

// unlz4 decodes one LZ4 block (the LZ4 block format description).
func unlz4(src []byte, size int) ([]byte, bool) {
	out := make([]byte, 0, size)
	length := func(n int) (int, bool) {
		if n != 15 {
			return n, true
		}
		for len(src) > 0 {
			b := src[0]
			src = src[1:]
			if n += int(b); b != 255 {
				return n, n <= size
			}
		}
		return 0, false
	}
	for len(src) > 0 {
		token := src[0]
		src = src[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(src) || len(out)+n > size {
			return nil, false
		}
		out, src = append(out, src[:n]...), src[n:]
		if len(src) == 0 {
			break
		}
		if len(src) < 2 {
			return nil, false
		}
		back := int(src[0]) | int(src[1])<<8
		src = src[2:]
		if n, ok = length(int(token & 15)); !ok || back == 0 || back > len(out) || len(out)+n+4 > size {
			return nil, false
		}
		for range n + 4 {
			out = append(out, out[len(out)-back])
		}
	}
	return out, len(out) == size
}
