package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// stable is Raft's StableStore: the term and the vote. Raft panics when they cannot be
// written, so writing must not need space on a full disk: they are stored in a file of
// fixed size, in two slots that are overwritten in turn. The newest slot with a correct
// checksum is the state, so a torn write leaves the previous state.
//
// A slot, integers little-endian:
//
//	0  magic "BSTB"   4 bytes
//	4  CRC-32C of bytes 8 to the end of the payload
//	8  sequence       uint64; slot number = sequence % 2
//	16 payload size   uint32
//	20 payload        JSON: {key: bytes}
type stable struct {
	mu   sync.Mutex // guards the fields below
	file *os.File
	seq  uint64
	keys map[string][]byte
}

const (
	slotSize   = 4096
	slotHeader = 20
	slotMagic  = "BSTB"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errNotFound has the text by which Raft recognizes a missing key.
var errNotFound = errors.New("not found")

func openStable(path string) (*stable, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &stable{file: f, keys: map[string][]byte{}}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), f.Close())
	}
	return s, atomicfile.Sync(filepath.Dir(path))
}

// load reads the newest complete slot, or fills a new file with zeros so that its
// blocks are allocated.
func (s *stable) load() error {
	raw := make([]byte, 2*slotSize)
	n, err := s.file.ReadAt(raw, 0)
	if n < len(raw) { // new, or its creation was interrupted before anything was stored
		if _, err := s.file.WriteAt(make([]byte, 2*slotSize), 0); err != nil {
			return err
		}
		return s.file.Sync()
	}
	if err != nil {
		return err
	}
	damaged := 0
	for _, slot := range [][]byte{raw[:slotSize], raw[slotSize:]} {
		seq, keys, err := decodeSlot(slot)
		if err != nil {
			damaged++
		} else if seq > s.seq {
			s.seq, s.keys = seq, keys
		}
	}
	if damaged == 2 {
		return errors.New("both copies of Raft's term and vote are damaged")
	}
	return nil
}

// decodeSlot decodes a slot; a slot of zeros has sequence 0 and no keys.
func decodeSlot(b []byte) (seq uint64, keys map[string][]byte, err error) {
	if isZero(b) {
		return 0, map[string][]byte{}, nil
	}
	size := binary.LittleEndian.Uint32(b[16:])
	if string(b[:4]) != slotMagic || size > slotSize-slotHeader ||
		crc32.Checksum(b[8:slotHeader+size], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, nil, errors.New("the slot is damaged")
	}
	err = json.Unmarshal(b[slotHeader:slotHeader+size], &keys)
	return binary.LittleEndian.Uint64(b[8:]), keys, err
}

func encodeSlot(seq uint64, keys map[string][]byte) ([]byte, error) {
	payload, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	if len(payload) > slotSize-slotHeader {
		return nil, fmt.Errorf("%d bytes do not fit into a slot", len(payload))
	}
	b := make([]byte, slotSize)
	copy(b, slotMagic)
	binary.LittleEndian.PutUint64(b[8:], seq)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(payload)))
	copy(b[slotHeader:], payload)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:slotHeader+len(payload)], castagnoli))
	return b, nil
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// Set stores a value durably.
func (s *stable) Set(k, val []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.keys[string(k)]; ok && bytes.Equal(old, val) { // as Raft sets its term again when it starts
		return nil
	}
	keys := map[string][]byte{string(k): append([]byte(nil), val...)}
	for name, v := range s.keys {
		if name != string(k) {
			keys[name] = v
		}
	}
	seq := s.seq + 1
	slot, err := encodeSlot(seq, keys)
	if err != nil {
		return err
	}
	if _, err := s.file.WriteAt(slot, int64(seq%2)*slotSize); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.seq, s.keys = seq, keys
	return nil
}

// Get returns a key's value, or errNotFound.
func (s *stable) Get(k []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.keys[string(k)]
	if !ok {
		return nil, errNotFound
	}
	return append([]byte(nil), v...), nil
}

// SetUint64 stores a number durably.
func (s *stable) SetUint64(k []byte, val uint64) error {
	return s.Set(k, binary.BigEndian.AppendUint64(nil, val))
}

// GetUint64 returns a key's number, or errNotFound.
func (s *stable) GetUint64(k []byte) (uint64, error) {
	raw, err := s.Get(k)
	if len(raw) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(raw), err
}

// Close closes the file.
func (s *stable) Close() error { return s.file.Close() }
