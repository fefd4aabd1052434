package fatbin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// An archive (System V ABI, "Archive File") is a magic string and members, each
// with a header: the name, and six more fields of which only the size in decimal
// is used here.
const (
	archiveMark     = "!<arch>\n"
	memberHead      = 60
	memberSizeAt    = 48
	memberSizeBytes = 10
)

// maxFatbins bounds the fatbins of one object or archive.
const maxFatbins = 1 << 12

// IsArchive reports whether a file is an archive.
func IsArchive(image []byte) bool { return bytes.HasPrefix(image, []byte(archiveMark)) }

// Objects returns the fatbins of a host's program, library or object, as nvcc
// creates them, or of an archive of objects. Members that are not objects are
// skipped. The error wraps ErrMalformed.
func Objects(image []byte) ([][]byte, error) {
	rest, isArchive := bytes.CutPrefix(image, []byte(archiveMark))
	if !isArchive {
		return objectFatbins(image, nil)
	}
	var list [][]byte
	for len(rest) > 0 {
		if len(rest) < memberHead {
			return nil, fmt.Errorf("%w: archive: member header is truncated to %d bytes", ErrMalformed, len(rest))
		}
		text := string(bytes.TrimRight(rest[memberSizeAt:memberSizeAt+memberSizeBytes], " "))
		size, err := strconv.ParseUint(text, 10, 32)
		rest = rest[memberHead:]
		if err != nil || size > uint64(len(rest)) {
			return nil, fmt.Errorf("%w: archive: member has size %q, %d bytes are left", ErrMalformed, text, len(rest))
		}
		if IsELF(rest[:size]) {
			if list, err = objectFatbins(rest[:size], list); err != nil {
				return nil, err
			}
		}
		rest = rest[min(size+size&1, uint64(len(rest))):]
	}
	return list, nil
}

// objectFatbins appends the fatbins of one object.
func objectFatbins(image []byte, list [][]byte) ([][]byte, error) {
	if !IsELF(image) {
		return nil, fmt.Errorf("%w: not an object and not an archive", ErrMalformed)
	}
	r := &reader{names: 2*len(image) + 1<<16}
	sections, err := r.sections(image)
	if err != nil {
		return nil, err
	}
	used := 0
	for _, s := range sections {
		if s.name != ".nv_fatbin" && s.name != "__nv_relfatbin" {
			continue
		}
		// Headers of a hostile file may all refer to the same bytes.
		if used += len(s.body); used > len(image) {
			return nil, fmt.Errorf("%w: object: sections overlap", ErrMalformed)
		}
		if list, err = splitFatbins(s.body, list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// splitFatbins appends the fatbins of one section, which begin at multiples of 8.
func splitFatbins(body []byte, list [][]byte) ([][]byte, error) {
	le := binary.LittleEndian
	for len(body) >= headerSize {
		if !Is(body) {
			body = body[8:]
			continue
		}
		head, size := uint64(le.Uint16(body[6:])), le.Uint64(body[8:])
		if head < headerSize || head > uint64(len(body)) || size > uint64(len(body))-head {
			return nil, fmt.Errorf("%w: fatbin has size %d, %d bytes are left", ErrMalformed, size, len(body))
		}
		size += head
		if list = append(list, body[:size:size]); len(list) > maxFatbins {
			return nil, fmt.Errorf("%w: too many fatbins, want at most %d", ErrMalformed, maxFatbins)
		}
		body = body[min((size+7)&^7, uint64(len(body))):]
	}
	return list, nil
}
