package ceph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// record is one line of the log of a volume or an image.
type record struct {
	Version int    `json:"v"` // 1
	Do      verb   `json:"do"`
	At      int64  `json:"at,omitempty"` // milliseconds since 1970, by the writer's clock
	Disk    string `json:"disk,omitempty"`

	// create, recreate
	Image      api.ImageID    `json:"image,omitempty"`
	FromVolume api.VolumeID   `json:"fromVolume,omitempty"`
	Snapshot   api.SnapshotID `json:"snapshot,omitempty"`
	Standalone bool           `json:"standalone,omitempty"`
	// LUKSBytes is the size of the header before the content; 0: it is not
	// encrypted.
	LUKSBytes int64 `json:"luksBytes,omitempty"`

	// For the create of an image. Sent is the disk with the file as it was
	// received, if that differs from Disk.
	Format       sds.Format `json:"format,omitempty"`
	SHA256       string     `json:"sha256,omitempty"`
	Sent         string     `json:"sent,omitempty"`
	VirtualBytes int64      `json:"virtualBytes,omitempty"`

	// SizeBytes is the size of the file of an image, and, for a volume, that of
	// its RBD image before a rollback.
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	Node  api.NodeID `json:"node,omitempty"`  // claim, release, fenced, opened
	Epoch int64      `json:"epoch,omitempty"` // of the above, and of recreate
	Count int64      `json:"count,omitempty"` // rollback, rolled
	// Client of opened is the client's address and nonce in Ceph.
	Client string `json:"client,omitempty"`
}

type verb string

const (
	create   verb = "create"
	recreate verb = "recreate"
	remove   verb = "delete"
	claim    verb = "claim"
	release  verb = "release"
	fenced   verb = "fenced"
	opened   verb = "opened"   // a client of the owner has the disk open; older versions skip this line
	rollback verb = "rollback" // starts
	rolled   verb = "rolled"   // ends
	// void: a disk that no line has named is to be removed. A pending line of a
	// dead process that names it has no effect.
	void verb = "void"
)

const (
	recordVersion = 1
	maxLog        = 16 << 20 // 50,000 starts of an instance
	// maxClients is how many clients are stored, the last ones: an owner that
	// starts its machine again without a release has ended the one before.
	maxClients = 16
)

func (r record) owner() sds.Owner { return sds.Owner{Node: r.Node, Epoch: r.Epoch} }

// state is the result of a log.
type state struct {
	made    *record // nil: it does not exist
	at      int64   // when it was first created, as record.At
	claim   *sds.Claim
	fence   *sds.Owner // the owner that took over, while the old owner's clients are not known to be blocklisted
	clients []client   // clients of owners that are not known to have closed the disk, or to be blocklisted
	// rollbacks that have ended, and the pending one.
	rollbacks int64
	pending   *record
	past      []string // disks that are not its own any more
	never     []string // disks that never become its own
	last      int64    // when the last line was written, as record.At
}

// client is a client that has had the disk open.
type client struct {
	Node    api.NodeID
	Address string
}

// names reports whether the log names the disk.
func (s state) names(disk string) bool {
	return s.made != nil && (s.made.Disk == disk || s.made.Sent == disk)
}

// over returns the disks that are not needed any more, whichever process
// created them.
func (s state) over() []string {
	all := slices.Concat(s.past, s.never)
	return slices.DeleteFunc(all, s.names)
}

// fold computes the state of a log. Every node gets the same result, because
// the cluster has ordered the lines; a line that is not allowed any more has
// no effect.
func fold(raw []byte) (state, error) {
	var s state
	for line := range bytes.Lines(raw) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return s, fmt.Errorf("decode line of a log: %w", err)
		}
		if r.Version != recordVersion {
			return s, api.Errorf(api.CodeState, "it was written by a newer version of Basalt").WithHint("upgrade this node")
		}
		s.apply(r)
		s.last = r.At
	}
	return s, nil
}

func (s *state) apply(r record) {
	switch {
	case r.Do == create || r.Do == recreate:
		s.publish(r)
	case r.Do == void && !s.names(r.Disk) && !slices.Contains(s.over(), r.Disk):
		s.never = append(s.never, r.disks()...)
	case s.made == nil:
		return
	case r.Do == remove:
		s.drop()
		*s = state{past: s.past, never: s.never}
	case r.Do == claim:
		s.take(r.owner())
	case r.Do == release && s.claim != nil && s.claim.Owner == r.owner():
		s.claim, s.clients = &sds.Claim{Owner: r.owner(), Released: true}, nil
	case r.Do == fenced && s.fence != nil && *s.fence == r.owner():
		s.fence = nil
		s.clients = slices.DeleteFunc(s.clients, func(c client) bool { return c.Node != r.Node })
	case r.Do == opened && s.claim != nil && !s.claim.Released && s.claim.Owner == r.owner():
		s.open(client{r.Node, r.Client})
	case r.Do == rollback && r.Count > s.rollbacks && (s.pending == nil || s.pending.Count < r.Count):
		s.pending = &r
	case r.Do == rolled && s.pending != nil && s.pending.Count == r.Count:
		s.rollbacks, s.pending = r.Count, nil
	}
}

func (s *state) open(c client) {
	if c.Address == "" || slices.Contains(s.clients, c) {
		return
	}
	s.clients = append(s.clients, c)
	s.clients = s.clients[max(0, len(s.clients)-maxClients):]
}

// publish sets the disk, if it is the first and still allowed.
func (s *state) publish(r record) {
	switch {
	case slices.Contains(s.never, r.Disk) || s.names(r.Disk):
	case s.made == nil:
		s.made, s.at = &r, r.At
		s.past = slices.DeleteFunc(s.past, s.names) // an image whose deletion was reverted
	case r.Do == recreate && r.Epoch > s.made.Epoch:
		s.drop()
		s.made = &r
	default:
		s.never = append(s.never, r.disks()...)
	}
}

func (s *state) drop() { s.past = append(s.past, s.made.disks()...) }

func (r record) disks() []string {
	if r.Sent == "" {
		return []string{r.Disk}
	}
	return []string{r.Disk, r.Sent}
}

func (s *state) take(o sds.Owner) {
	write, err := o.Decide("", s.claim)
	if err != nil || !write {
		return
	}
	over := s.claim != nil && s.claim.Node != o.Node && !s.claim.Released
	if over || s.fence != nil {
		s.fence = &o
	}
	s.claim = &sds.Claim{Owner: o}
}
