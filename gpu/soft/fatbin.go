package soft

import (
	"encoding/binary"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// A fatbin is a header and entries, each a header and a payload. The layout is
// known from public tools: magic u32, version u16, header size u16, bytes u64;
// entry: kind u16 (1 PTX, 2 ELF), u16, header size u32, padded payload u64, compressed
// size u32, u32, minor u16, major u16, arch u32, name offset and length u32,
// flags u64, u64, decompressed size u64.
const (
	fatbinMagic = 0xBA55ED50
	fatbinLZ4   = 0x2000
	fatbinZstd  = 0x8000
	maxPTX      = 64 << 20
)

// capability is the compute capability that the device reports, as in sm_61.
//
// A real driver refuses PTX for a newer target. The soft GPU takes it: it
// knows many instructions of later architectures (match, redux, bfloat16), so
// it judges instructions, not the .target line, and names the one it lacks.
const capability = 61

// better says whether PTX for architecture a is preferred to that for b: the
// newest that the device covers, or else the oldest.
func better(a, b uint32) bool {
	if a <= capability && b <= capability {
		return a > b
	}
	return a < b
}

// fatbinPTX gives the PTX that suits the device best.
func fatbinPTX(image []byte) (string, error) {
	bad := fmt.Errorf("%w: malformed fatbin", abi.ErrInvalidImage)
	if len(image) < 16 {
		return "", bad
	}
	le := binary.LittleEndian
	at := uint64(le.Uint16(image[6:]))
	end := at + le.Uint64(image[8:])
	if end < at || end > uint64(len(image)) {
		return "", bad
	}
	best, arch := "", uint32(0)
	for at+64 <= end {
		h := image[at:end]
		head, size := uint64(le.Uint32(h[4:])), le.Uint64(h[8:])
		if head < 64 || head > uint64(len(h)) || size > uint64(len(h))-head {
			return "", bad
		}
		body, flags := h[head:head+size], le.Uint64(h[40:])
		if le.Uint16(h) == 1 && (best == "" || better(le.Uint32(h[28:]), arch)) {
			switch {
			case flags&fatbinZstd != 0:
				return "", fmt.Errorf("%w: zstd-compressed PTX is not supported", abi.ErrNoBinaryForGPU)
			case flags&fatbinLZ4 != 0:
				n := uint64(le.Uint32(h[16:]))
				if n > size || le.Uint64(h[56:]) > maxPTX {
					return "", bad
				}
				out, ok := unlz4(body[:n], int(le.Uint64(h[56:])))
				if !ok {
					return "", bad
				}
				body = out
			}
			best, arch = string(trimZero(body)), le.Uint32(h[28:])
		}
		at += head + size
	}
	if best == "" {
		return "", fmt.Errorf("%w: the fatbin has no PTX", abi.ErrNoBinaryForGPU)
	}
	return best, nil
}

func trimZero(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

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
