package invoice

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// shares determines how much of the GPU time in an hour was reserved. A reserved share
// of a GPU has its own price, whether it is used or not; the time that it includes is
// not charged again, and time beyond it is. Therefore the usage of an hour is held back
// until the next one begins. Without a price for the share, as in older price books,
// all GPU time is charged and the share is not.
type shares struct{ hour []api.Use }

// nanosOfShare is the GPU time that a hundredth of a GPU includes per second.
const nanosOfShare = 1_000_000_000 / 100

// add adds usage, and passes on that of the previous hour.
func (s *shares) add(u api.Use, book tariff.Book, rate func(api.Use) error) error {
	if !book.Meters(api.MeterGPUShare) {
		if u.Meter == api.MeterGPUShare {
			return nil
		}
		return rate(u)
	}
	if len(s.hour) > 0 {
		last := s.hour[len(s.hour)-1]
		if last.Compare(u) >= 0 {
			return api.Errorf(api.CodeInvalid, "usage of meter %s, resource %s, hour %s is out of order", u.Meter, u.Resource, u.Hour)
		}
		if !last.Hour.Equal(u.Hour) {
			if err := s.flush(book, rate); err != nil {
				return err
			}
		}
	}
	s.hour = append(s.hour, u)
	return nil
}

// reservation identifies a share by its owner and its attributes.
type reservation struct {
	project, resource string
	of                api.PriceSelector // including the tier
}

// flush passes on the usage that is held back.
func (s *shares) flush(book tariff.Book, rate func(api.Use) error) error {
	hour := s.hour
	s.hour = nil
	var left map[reservation]int64
	for _, u := range hour {
		if u.Meter == api.MeterGPUShare && book.Priced(u.Meter, u.Attributes, u.Hour) {
			if left == nil {
				left = map[reservation]int64{}
			}
			// The share is at most one whole GPU, so an hour cannot overflow.
			left[reservation{u.Project, u.Resource, u.Attributes}] += min(u.Quantity, maxShare) * nanosOfShare
		}
	}
	for _, u := range hour {
		if u.Meter == api.MeterGPUShare && !book.Priced(u.Meter, u.Attributes, u.Hour) {
			continue
		}
		if tier, is := api.TierOfMeter(u.Meter); is && left != nil {
			key := reservation{u.Project, u.Resource, u.Attributes}
			key.of.Tier = string(tier)
			paid := min(u.Quantity, left[key])
			left[key] -= paid
			u.Quantity -= paid
		}
		if err := rate(u); err != nil {
			return err
		}
	}
	return nil
}

// maxShare limits the share-seconds of an hour that count, far beyond what a node can
// reserve.
const maxShare = 1 << 39

func (s shares) fork() shares { return shares{slices.Clone(s.hour)} }
