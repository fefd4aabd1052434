package main

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// The layout of region 0 is header, ring, slots, chunk states, arena.
const (
	ringAt     = abi.HeaderSize
	ringSize   = 64 << 10
	slotsAt    = ringAt + ringSize
	slotCount  = 64
	chunksAt   = slotsAt + slotCount*abi.SlotSize
	chunkSize  = 64 << 10
	chunkCount = 16
	arenaAt    = chunksAt + 4096
)

// layout writes the header's layout words, which a real worker checks.
func (s *session) layout(size int) {
	le.PutUint16(s.r.bytes[abi.OffMajor:], abi.Major)
	le.PutUint16(s.r.bytes[abi.OffMinor:], abi.Minor)
	for off, v := range map[int]uint64{
		abi.OffRegionSize: uint64(size), abi.OffRing: ringAt, abi.OffRingSize: ringSize,
		abi.OffSlots: slotsAt, abi.OffSlotCount: slotCount, abi.OffChunkState: chunksAt,
		abi.OffArena: arenaAt, abi.OffChunkSize: chunkSize, abi.OffChunkCount: chunkCount,
	} {
		le.PutUint64(s.r.bytes[off:], v)
	}
}

// call puts one command into the ring and sleeps until its completion, so that
// each call uses both doorbells.
func (s *session) call(op abi.Op, args []byte) error {
	slot := slotsAt + abi.SlotSize
	s.word(slot + abi.SlotState).Store(abi.SlotPending)
	length := (abi.EntryHeaderSize + len(args) + 7) &^ 7
	head := le.Uint64(s.r.bytes[abi.OffHead:])
	at := int(head % ringSize)
	if at+length > ringSize {
		return fmt.Errorf("the ring is over at %d", at)
	}
	e := s.r.bytes[ringAt+at:]
	le.PutUint32(e, uint32(length))
	le.PutUint16(e[4:], uint16(op))
	le.PutUint16(e[6:], 0)
	le.PutUint32(e[8:], 1)
	le.PutUint32(e[12:], 0)
	copy(e[abi.EntryHeaderSize:], args)
	s.word(abi.OffHead).Store(uint32(head) + uint32(length)) // far below 4 GiB
	if s.word(abi.OffWorkerSleeps).Load() != 0 {
		if err := s.send(abi.MsgKick, 0, nil); err != nil {
			return err
		}
	}
	s.word(slot+abi.SlotState).CompareAndSwap(abi.SlotPending, abi.SlotSleeping)
	if err := s.until(func() bool { return s.word(slot+abi.SlotState).Load() == abi.SlotDone }); err != nil {
		return err
	}
	if r := abi.Result(s.word(slot + abi.SlotResult).Load()); r != abi.Success {
		return fmt.Errorf("%v: %w", op, r)
	}
	return nil
}

// synchronize creates a context and waits for its work n times.
func (s *session) synchronize(n int) error {
	if err := s.call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}.Append(nil)); err != nil {
		return err
	}
	start := time.Now()
	for range n {
		if err := s.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: 1}.Append(nil)); err != nil {
			return err
		}
	}
	fmt.Printf("probe: %d synchronizing calls, %d us each\n", n, time.Since(start).Microseconds()/int64(n))
	return nil
}
