package fake

import (
	"bytes"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

const blockBytes = 4096

// blocks are the written blocks of a disk, by number. A block is never
// modified, so that maps can share it.
type blocks map[int64][]byte

func (b blocks) write(at int64, data []byte) {
	for len(data) > 0 {
		block, from := at/blockBytes, at%blockBytes
		anew := make([]byte, blockBytes)
		copy(anew, b[block])
		n := copy(anew[from:], data)
		b[block] = anew
		data, at = data[n:], at+int64(n)
	}
}

func (b blocks) read(at int64, data []byte) {
	for len(data) > 0 {
		block, from := at/blockBytes, at%blockBytes
		have := b[block]
		if have == nil {
			have = make([]byte, blockBytes)
		}
		n := copy(data, have[from:])
		data, at = data[n:], at+int64(n)
	}
}

// WriteAt writes to the disk as an instance that has it open does. key is nil
// for one that is not encrypted.
func (p *pool) WriteAt(src sds.Source, key *sds.Encryption, data []byte, at int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.all() {
		if v.overlay == src.Path && src.Path != "" {
			v.freeze() // its machine has switched to the overlay, whatever it returned
		}
		if v.Source.Path == src.Path {
			if err := v.within(key, data, at); err != nil {
				return err
			}
			v.content.write(at, data)
			return nil
		}
	}
	return api.Errorf(api.CodeNotFound, "disk %s is not open for writing", src.Path)
}

// ReadAt reads from a volume's or a snapshot's disk.
func (p *pool) ReadAt(src sds.Source, key *sds.Encryption, data []byte, at int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.all() {
		if v.Source.Path == src.Path {
			v.content.read(at, data)
			return v.within(key, data, at)
		}
		for _, snap := range v.snapshots {
			if snap.Ready && snap.path == src.Path {
				snap.content.read(at, data)
				return v.within(key, data, at)
			}
		}
	}
	return api.Errorf(api.CodeNotFound, "disk %s does not exist", src.Path)
}

func (p *pool) all() []*volume {
	var all []*volume
	for _, v := range p.volumes {
		all = append(all, v)
	}
	for _, v := range p.hidden {
		all = append(all, v)
	}
	return all
}

func (v *volume) within(key *sds.Encryption, data []byte, at int64) error {
	switch {
	case (key == nil) != (v.key == "") || key != nil && !bytes.Equal(key.Passphrase, []byte(v.key)):
		return sds.WrongKey(v.ID)
	case at < 0 || at+int64(len(data)) > v.SizeBytes:
		return api.Errorf(api.CodeInvalid, "write ends at byte %d of a disk of %d bytes", at+int64(len(data)), v.SizeBytes)
	}
	return nil
}
