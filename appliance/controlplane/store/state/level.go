package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Level is the feature level that this program supports: the version of all
// that stores of several nodes exchange (log entries, snapshots, backups), and of
// what the state machine makes of them.
//
// A cluster has a level, too. It stands in the tables, and an entry of the log
// raises it when every member supports the next: all nodes change what they make
// of the log at the same entry, whatever release each of them runs. What a level
// has brought is done only from that level on (View.Level), and no command that
// it has brought is written before. A program that meets a level beyond its own
// stops.
//
// 2: objects have claims. 3: use is rolled up by the hour, objects take of
// quotas, and there is an audit trail. 4: there are events for webhooks. 5: usage
// records are rows, old ones go, and nodes compare the place in the log when they
// read. 6: instances have histories. 7: clusters have a level, and an id. 8: events
// of the audit trail are sealed with a key of the cluster, which comes with the
// level; those for webhooks are shared out fairly between organizations; objects
// take of quotas by being there, and organizations have limits that they do not
// set; what others refer to is not deleted, and what is not there is not referred
// to; an organization that has used something since somebody looked is not deleted. 9: usage records
// and sums of use have the attributes by which prices differ.
const Level = 9

// AttributesLevel has attributes in usage records: rows of before have none, and
// programs of before cannot read those that do.
const AttributesLevel = 9

// auditLevel has sealed events.
const auditLevel = 8

// unsaidLevel is that of tables without one: clusters of up to that level had
// members of one release only.
const unsaidLevel = 6

// settledVersion is the first byte of a log entry that says what cluster this is
// and how far its members have come: JSON follows. It is no batch.
const settledVersion = 11

// Settlement is such an entry.
type Settlement struct {
	Level   int      `json:"level"`
	ID      string   `json:"id"`      // of the cluster, which has one from then on
	Members []string `json:"members"` // of which it is known that they support the level
	// AuditKey seals the audit trail's events from then on, if there is no such key.
	AuditKey []byte `json:"auditKey,omitempty"`
}

var (
	metaLevel = []byte("level") // uint64
	metaID    = []byte("id")    // text

	// metaAuditKey is the first event that it seals, uint64, and the key. It leaves
	// the tables with Raft's snapshots, which only members see, and not with backups.
	metaAuditKey = []byte("audit-key")
)

// Level of the cluster when the entry is applied.
func (v View) Level() int {
	if n := number(v.tx.Bucket(bucketMeta).Get(metaLevel)); n != 0 {
		return int(n)
	}
	return unsaidLevel
}

// Untouched reports whether no entry was ever applied.
func (v View) Untouched() bool {
	return v.Applied() == 0 && v.Revision() == 0 && v.tx.Bucket(bucketMeta).Get(metaLevel) == nil
}

// ClusterID is empty before level 7.
func (v View) ClusterID() string { return string(v.tx.Bucket(bucketMeta).Get(metaID)) }

// EncodeSettlement makes a log entry of it.
func EncodeSettlement(s Settlement) ([]byte, error) {
	raw, err := json.Marshal(s)
	return append([]byte{settledVersion}, raw...), err
}

// applySettled applies such an entry. A node that has joined since the members
// were asked may not support the level: then nothing changes.
func (v View) applySettled(raw []byte) (Answer, error) {
	var s Settlement
	if err := json.Unmarshal(raw, &s); err != nil {
		return Answer{}, fmt.Errorf("decode log entry: %w", err)
	}
	if s.Level > v.group.level {
		return Answer{}, BeyondLevel(s.Level)
	}
	prefix := join(string(api.KindNode), "")
	c := v.tx.Bucket(bucketObjects).Cursor()
	for k, _ := c.Seek(prefix); len(k) > len(prefix) && string(k[:len(prefix)]) == string(prefix); k, _ = c.Next() {
		if id := string(k[len(prefix):]); !slices.Contains(s.Members, id) {
			return Answer{Refused: api.Errorf(api.CodeConflict, "feature level supported by node %s is unknown", id).WithHint("try again")}, nil
		}
	}
	return Answer{}, v.Settle(s)
}

// Settle keeps the highest level and the first id.
func (v View) Settle(s Settlement) error {
	meta, was := v.tx.Bucket(bucketMeta), v.Level()
	if max(s.Level, was) >= referencesLevel {
		if err := v.indexReferences(); err != nil {
			return err
		}
	}
	if err := meta.Put(metaLevel, be64(uint64(max(s.Level, was)))); err != nil {
		return err
	}
	if was < countsLevel && s.Level >= countsLevel {
		if err := v.countKinds(); err != nil {
			return err
		}
	}
	if v.ClusterID() == "" && s.ID != "" {
		if err := meta.Put(metaID, []byte(s.ID)); err != nil {
			return err
		}
	}
	if v.Level() < auditLevel || len(s.AuditKey) == 0 || meta.Get(metaAuditKey) != nil {
		return nil
	}
	last, err := v.lastEvent()
	if err != nil {
		return err
	}
	return meta.Put(metaAuditKey, append(be64(uint64(last.Seq)+1), s.AuditKey...))
}

// TooOld means that the cluster has come further than this program.
type TooOld struct{ What string }

// Error returns what to do.
func (t *TooOld) Error() string {
	return fmt.Sprintf("%s, and this program supports feature levels up to %d: install the cluster's release on this node", t.What, Level)
}

// BeyondLevel returns the TooOld of a program that meets a level above its own.
func BeyondLevel(level int) error {
	return &TooOld{fmt.Sprintf("the cluster has feature level %d", level)}
}
