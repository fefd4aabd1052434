package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Upgrade names the worker stream: POST /v1/worker, upgraded; then each side
// writes lines of JSON. The first line is the worker's registration. Fields that a side
// does not know it passes over.
//
//	worker → gpud                          gpud → worker
//	register {…}                           reply: limits, device
//	process  {pid, name}
//	reserve  {bytes, account, spare}       reply: ok, spare, sole | out-of-memory
//	release  {bytes}
//	acquire  {totals}                      reply: grantNanos, when it is its turn
//	yield    {totals}
//	totals   {totals}
//	memory   {account}                     reply: used, others, limits, sole
//	status   {account}                     reply: status
//	bye      {totals}                      reply: the totals are on the disk
//	evictable                              (only to a gpud whose reply to register says evicts)
//	evicted  {bytes, failed}               (the answer to evict)
//	restored {failed}                      (after a grant to one who was evicted)
//	recalled {id, bytes}                   (the answer to recall: a release of so many)
//	share    {share}                       reply: ok | out-of-memory (to a gpud whose reply to register says shares)
//	share    {share, file}                 reply: others may open it; the descriptor comes with the line
//	open     {share}                       reply: share, with its descriptor | not-found
//	unshare  {share, keep}                 (keep: it is memory of the session's own again)
//	                                       hurry: others wait
//	                                       limits: they changed
//	                                       evict {bytes}: memory is wanted
//	                                       recall {id}: give back what nothing uses
//	                                       lost {message}: end yourself
//
// A worker that keeps an account of its memory (worker.Account) says account: then
// gpud may give it more than it asks for (spare), tell it that no other session of
// its vGPU has memory (sole), and ends both with recall. An older worker never says
// so, and an older gpud passes it over and never gives anything to recall.
const Upgrade = "basalt-worker/1"

// Operations of a worker's line.
const (
	OpRegister = "register"
	OpProcess  = "process"
	OpReserve  = "reserve"
	OpRelease  = "release"
	OpAcquire  = "acquire"
	OpYield    = "yield"
	OpTotals   = "totals"
	OpMemory   = "memory"
	OpStatus   = "status"
	OpBye      = "bye"

	OpEvictable = "evictable"
	OpEvicted   = "evicted"
	OpRestored  = "restored"

	OpRecalled = "recalled"

	OpShare   = "share"
	OpOpen    = "open"
	OpUnshare = "unshare"
)

// Operations of gpud's line.
const (
	OpReply  = "reply"
	OpHurry  = "hurry"
	OpLimits = "limits"
	OpEvict  = "evict"
	OpRecall = "recall"
	OpLost   = "lost"
)

// Limits of a line in bytes, newline included. A registration with MaxShares and a
// status of a vGPU with all its processes are the longest.
const (
	MaxWorkerLine = 16 << 10
	MaxNodeLine   = 128 << 10
	// MaxName bounds a process's name, in bytes.
	MaxName = 64
	// MaxID bounds session and vGPU ids, in bytes.
	MaxID = 128
	// MaxToken bounds a token, in bytes.
	MaxToken = 128
)

// ToNode is a worker's line.
type ToNode struct {
	Op       string         `json:"op"`
	ID       uint64         `json:"id,omitempty"` // of the request, chosen by the worker; 0: no reply wanted
	Register *Register      `json:"register,omitempty"`
	Bytes    uint64         `json:"bytes,omitempty"`
	PID      uint32         `json:"pid,omitempty"`
	Name     string         `json:"name,omitempty"`
	Totals   *worker.Totals `json:"totals,omitempty"`
	Failed   string         `json:"failed,omitempty"` // why memory did not move
	// Account, of reserve, memory and status: the worker keeps an account, or wants
	// a number in which what lies idle in accounts is free.
	Account bool   `json:"account,omitempty"`
	Spare   uint64 `json:"spare,omitempty"` // of reserve: bytes more that it would take
	Share   *Share `json:"share,omitempty"`
	HasFile bool   `json:"file,omitempty"` // a descriptor comes with the line
	Keep    bool   `json:"keep,omitempty"`
	// File is the descriptor: of who reads the line, from then on.
	File *os.File `json:"-"`
}

// Register is a worker's first line. A worker that comes back names the same
// session, with the memory it holds and its totals since it started.
type Register struct {
	Version int           `json:"version"`
	VGPU    string        `json:"vgpu"`
	Token   string        `json:"token"`   // the vGPU's secret: VGPU.Token
	Session string        `json:"session"` // random, made by the worker
	PID     uint32        `json:"pid"`     // in the guest
	Name    string        `json:"name"`
	Held    uint64        `json:"held"` // bytes
	Totals  worker.Totals `json:"totals"`
	// Evictable: it serves evict. Out: it was evicted and has not been restored;
	// Swapped of what it holds is in the host's memory.
	Evictable bool   `json:"evictable,omitempty"`
	Out       bool   `json:"out,omitempty"`
	Swapped   uint64 `json:"swapped,omitempty"` // bytes
	Account   bool   `json:"account,omitempty"` // it keeps an account and serves recall
	// Shares are what it shares and has opened, at most MaxShares; Held is without them.
	Shares []Share `json:"shares,omitempty"`
}

// FromNode is gpud's line.
type FromNode struct {
	Op         string               `json:"op"`
	ID         uint64               `json:"id,omitempty"`
	Code       string               `json:"code,omitempty"` // empty: done
	Message    string               `json:"message,omitempty"`
	Limits     *worker.Limits       `json:"limits,omitempty"`
	Device     *Device              `json:"device,omitempty"`
	GrantNanos int64                `json:"grantNanos,omitempty"`
	Bytes      uint64               `json:"bytes,omitempty"`  // to evict
	Evicts     bool                 `json:"evicts,omitempty"` // this gpud may ask to evict
	Used       uint64               `json:"used,omitempty"`   // bytes of the vGPU
	Others     *uint64              `json:"others,omitempty"` // of them those of other sessions
	Spare      uint64               `json:"spare,omitempty"`  // bytes reserved beyond those asked for
	Sole       bool                 `json:"sole,omitempty"`   // no other session of the vGPU has memory, until recall
	Status     *abi.VGPUStatusReply `json:"status,omitempty"`
	Shares     bool                 `json:"shares,omitempty"` // this gpud lets sessions share memory
	Share      *Share               `json:"share,omitempty"`
	HasFile    bool                 `json:"file,omitempty"` // a descriptor comes with the line
	// File is the descriptor: of who writes the line until it is written, and then of
	// who reads it.
	File *os.File `json:"-"`
}

// Device is the card that a worker opens.
type Device struct {
	Driver          string   `json:"driver"` // DriverSoft, DriverNull or DriverCUDA
	UUID            [16]byte `json:"uuid"`   // of the card; gpu/cuda finds it by this
	Name            string   `json:"name"`
	VRAMBytes       uint64   `json:"vramBytes"`
	Multiprocessors int      `json:"multiprocessors"`
	Model           string   `json:"model,omitempty"`      // of a soft GPU, by its name in gpu/soft/model; empty: its usual one
	Capability      int      `json:"capability,omitempty"` // of a soft GPU: 90 is compute capability 9.0; 0: the model's
	Fault           string   `json:"fault,omitempty"`      // of a soft GPU, injected: one of gpu/soft/model's
	Check           string   `json:"check,omitempty"`      // of a soft GPU: mistakes of kernels that it looks for, as "memory,race,init"
	Engine          string   `json:"engine,omitempty"`     // of a soft GPU: how it runs instructions; a name in gpu/soft/model
}

// ErrLine is a line that breaks a rule; the stream ends.
var ErrLine = errors.New("bad line in the worker stream")

// ReadToNode reads a worker's line. r must have a buffer of MaxWorkerLine.
func ReadToNode(r *bufio.Reader) (m ToNode, err error) {
	if err := readLine(r, MaxWorkerLine, &m); err != nil {
		return ToNode{}, err
	}
	return m, m.check()
}

// ReadFromNode reads gpud's line. r must have a buffer of MaxNodeLine.
func ReadFromNode(r *bufio.Reader) (m FromNode, err error) {
	err = readLine(r, MaxNodeLine, &m)
	return m, err
}

// Write writes a line.
func Write(w io.Writer, m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// WriteWith writes a line with a descriptor.
func WriteWith(conn *net.UnixConn, m any, file *os.File) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeFile(conn, append(b, '\n'), file)
}

func readLine(r *bufio.Reader, limit int, into any) error {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > limit {
		return fmt.Errorf("%w: longer than %d bytes", ErrLine, limit)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	return nil
}

func (m *ToNode) check() error {
	switch m.Op {
	case OpRegister:
		r := m.Register
		if r == nil || !printable(r.VGPU, 1, MaxID) || !printable(r.Session, 16, MaxID) || len(r.Token) > MaxToken {
			return fmt.Errorf("%w: a registration needs a vgpu, its token and a session", ErrLine)
		}
		if r.Swapped > r.Held || r.Swapped > 0 && !r.Out {
			return fmt.Errorf("%w: %d bytes are swapped, want at most %d", ErrLine, r.Swapped, r.Held)
		}
		if len(r.Shares) > MaxShares {
			return fmt.Errorf("%w: %d pieces of shared memory, want at most %d", ErrLine, len(r.Shares), MaxShares)
		}
		for i := range r.Shares {
			if err := r.Shares[i].check(); err != nil {
				return err
			}
		}
		r.Name = CleanName(r.Name)
	case OpProcess:
		m.Name = CleanName(m.Name)
	case OpReserve, OpRelease:
		if m.Bytes == 0 {
			return fmt.Errorf("%w: %s has no operand", ErrLine, m.Op)
		}
	case OpTotals:
		if m.Totals == nil {
			return fmt.Errorf("%w: totals are missing", ErrLine)
		}
	case OpRecalled:
		if m.ID == 0 {
			return fmt.Errorf("%w: unexpected answer to a recall", ErrLine)
		}
	case OpEvicted, OpRestored:
		m.Failed = cleanText(m.Failed)
	case OpShare, OpOpen, OpUnshare:
		return m.Share.check()
	case OpAcquire, OpYield, OpMemory, OpStatus, OpBye, OpEvictable:
	default:
		return fmt.Errorf("%w: unknown operation", ErrLine)
	}
	return nil
}

func printable(s string, shortest, longest int) bool {
	if len(s) < shortest || len(s) > longest {
		return false
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// ValidID reports whether a vGPU's id is one: printable ASCII without spaces or
// slashes, at most MaxID bytes.
func ValidID(s string) bool {
	if !printable(s, 1, MaxID) {
		return false
	}
	for _, c := range []byte(s) {
		if c == '/' {
			return false
		}
	}
	return true
}

// maxText bounds what a worker says to a log, in bytes.
const maxText = 512

func cleanText(s string) string {
	b := []byte(s[:min(len(s), maxText)])
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// CleanName makes a name from the guest fit for a terminal and a log: at most
// MaxName bytes of printable ASCII.
func CleanName(s string) string {
	return cleanText(s[:min(len(s), MaxName)])
}
