package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Events for webhooks are written where a batch takes effect, so that every change has
// its event, and no event describes a change that did not happen. They are bounded by
// age and number; backups do not contain them.

// emitWebhookEvents stores the events of one change of a batch.
func (v View) emitWebhookEvents(t *txn, change api.Event, before *api.Object) error {
	for _, e := range api.EventsOf(before, change, t.raised[change.Revision], t.at, t.causes) {
		if err := v.putWebhookEvent(e); err != nil {
			return err
		}
	}
	return nil
}

func (v View) putWebhookEvent(e api.WebhookEvent) error {
	raw, err := EncodeJSON(e)
	if err != nil {
		return err
	}
	shares, err := v.shares()
	if err != nil {
		return err
	}
	b, seq := v.tx.Bucket(bucketEvents), be64(uint64(e.Seq))
	if err := b.Put(seq, raw); err != nil {
		return err
	}
	if err := v.tx.Bucket(bucketEventOrg).Put(append(join(e.Organization, ""), seq...), nil); err != nil {
		return err
	}
	if err := shares.add(e.Organization, 1); err != nil {
		return err
	}
	return v.trimEvents(b.Sequence()+1, e.Timestamp, shares)
}

// trimMost is how many events are removed when one is added: after a quiet week the old
// ones are removed a few at a time.
const trimMost = 16

// trimEvents removes the events that exceed the bounds, of which there are count: those
// that are too old, and while there are too many, the oldest of the organization that
// has the most, so that an organization that floods the events loses only its own.
// Before level 8 it is the oldest of all.
func (v View) trimEvents(count uint64, now time.Time, shares shares) error {
	b := v.tx.Bucket(bucketEvents)
	for range trimMost {
		k, raw := b.Cursor().First()
		if k == nil {
			break
		}
		e, err := decodeWebhookEvent(raw)
		if err != nil {
			return err
		}
		if old := now.Sub(e.Timestamp) > api.WebhookEventAge; !old && count <= v.group.most {
			break
		} else if !old {
			if e.Organization, k, err = shares.most(e.Organization, k); err != nil {
				return err
			}
			if err := shares.drop(e.Organization); err != nil {
				return err
			}
		}
		if err := v.deleteWebhookEvent(e.Organization, k, shares); err != nil {
			return err
		}
		count--
	}
	return b.SetSequence(count)
}

// deleteWebhookEvent removes an organization's event with that key.
func (v View) deleteWebhookEvent(organization string, seq []byte, shares shares) error {
	seq = bytes.Clone(seq) // it is the bucket's
	if err := v.tx.Bucket(bucketEventOrg).Delete(append(join(organization, ""), seq...)); err != nil {
		return err
	}
	if err := v.tx.Bucket(bucketEvents).Delete(seq); err != nil {
		return err
	}
	return shares.add(organization, -1)
}

func decodeWebhookEvent(raw []byte) (e api.WebhookEvent, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("decode event: %w", err)
	}
	return e, nil
}

// Events returns one page of the events for webhooks.
func (v View) Events(q api.EventQuery) (api.EventPage, error) {
	page := api.EventPage{Items: []api.WebhookEvent{}, Dropped: v.dropped(q.Organization)}
	events := v.tx.Bucket(bucketEvents)
	bucket, prefix := events, []byte(nil)
	if q.Organization != "" {
		bucket, prefix = v.tx.Bucket(bucketEventOrg), join(q.Organization, "")
	}
	for seq := range seqs(bucket, prefix, q.After, q.Newest) {
		if len(page.Items) == q.Limit {
			page.More = true
			break
		}
		e, err := decodeWebhookEvent(events.Get(seq))
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}
