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

// Upgrade names the worker stream: POST /v1/worker, upgraded; then each side writes lines of JSON.
// The first line is the worker's registration. Each side ignores fields that it does not know.
//
//	worker → gpud                          gpud → worker
//	register {…}                           reply: limits, device
//	process  {pid, name}
//	reserve  {bytes, account, spare}       reply: ok, spare, sole | out-of-memory
//	release  {bytes}
//	acquire  {totals}                      reply: grantNanos, when it is its turn
//	yield    {totals}
//	totals   {totals, fault}               (fault: an error has ended a context)
//	memory   {account}                     reply: used, others, limits, sole
//	status   {account}                     reply: status
//	bye      {totals}                      reply: the totals are on disk
//	evictable                              (only to a gpud whose reply to register has evicts)
//	evicted  {bytes, failed}               (the answer to evict)
//	restored {failed}                      (after a grant to a session that was evicted)
//	recalled {id, bytes}                   (the answer to recall: a release of these bytes)
//	share    {share}                       reply: ok | out-of-memory (to a gpud whose reply to register has shares)
//	share    {share, file}                 reply: others may open it; the descriptor is sent with the line
//	open     {share}                       reply: share, with its descriptor | not-found
//	unshare  {share, keep}                 (keep: it becomes the session's own memory again)
//	                                       hurry: others wait
//	                                       limits: they changed
//	                                       evict {bytes}: memory is wanted
//	                                       recall {id}: give back unused memory
//	                                       lost {message}: exit
//
// A worker that keeps an account of its memory (worker.Account) sets account: then gpud may grant
// it more than it asks for (spare) and tell it that no other session of its vGPU has memory (sole);
// recall ends both. An older worker never sets it, and an older gpud ignores it and never grants
// memory to recall.
const Upgrade = "basalt-worker/1"

// Op values of a worker's line.
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

// Op values of gpud's line.
const (
	OpReply        = "reply"
	OpYieldRequest = "hurry"
	OpLimits       = "limits"
	OpEvict        = "evict"
	OpRecall       = "recall"
	OpLost         = "lost"
)

// Limits of a line in bytes, including the newline. A registration with MaxShares
// and a status of a vGPU with all its processes are the longest lines.
const (
	MaxWorkerLine = 16 << 10
	MaxNodeLine   = 128 << 10
	// MaxName bounds a process's name, in bytes.
	MaxName = 64
	// MaxID bounds session and vGPU IDs, in bytes.
	MaxID = 128
	// MaxToken bounds a token, in bytes.
	MaxToken = 128
)

// ToNode is a line that a worker sends.
type ToNode struct {
	Op       string         `json:"op"`
	ID       uint64         `json:"id,omitempty"` // of the request, chosen by the worker; 0: no reply wanted
	Register *Register      `json:"register,omitempty"`
	Bytes    uint64         `json:"bytes,omitempty"`
	PID      uint32         `json:"pid,omitempty"`
	Name     string         `json:"name,omitempty"`
	Totals   *worker.Totals `json:"totals,omitempty"`
	Failed   string         `json:"failed,omitempty"` // why memory was not evicted or restored
	Fault    uint32         `json:"fault,omitempty"`  // in totals: the CUresult of a context that has just failed
	// Account, in reserve, memory and status, means that the worker keeps an
	// account, or wants a number in which unused memory in accounts counts as free.
	Account bool   `json:"account,omitempty"`
	Spare   uint64 `json:"spare,omitempty"` // in reserve: additional bytes that the worker would accept
	Share   *Share `json:"share,omitempty"`
	HasFile bool   `json:"file,omitempty"` // a descriptor is sent with the line
	Keep    bool   `json:"keep,omitempty"`
	// File is the descriptor; it is owned by whoever reads the line.
	File *os.File `json:"-"`
}

// Register is a worker's first line. A worker that reconnects sends the same
// session, with the memory that it holds and its totals since it started.
type Register struct {
	Version int           `json:"version"`
	VGPU    string        `json:"vgpu"`
	Token   string        `json:"token"`   // the vGPU's secret: VGPU.Token
	Session string        `json:"session"` // random, generated by the worker
	PID     uint32        `json:"pid"`     // in the guest
	Name    string        `json:"name"`
	Held    uint64        `json:"held"` // bytes
	Totals  worker.Totals `json:"totals"`
	// Evictable means that the worker supports evict. Out means that it was
	// evicted and has not been restored; Swapped bytes of what it holds are in
	// host memory.
	Evictable bool   `json:"evictable,omitempty"`
	Out       bool   `json:"out,omitempty"`
	Swapped   uint64 `json:"swapped,omitempty"` // bytes
	Account   bool   `json:"account,omitempty"` // it keeps an account and answers recall
	// Shares lists what the worker shares and has opened, at most MaxShares; Held does
	// not include them.
	Shares []Share `json:"shares,omitempty"`
}

// FromNode is a line that gpud sends.
type FromNode struct {
	Op         string               `json:"op"`
	ID         uint64               `json:"id,omitempty"`
	Code       string               `json:"code,omitempty"` // empty: success
	Message    string               `json:"message,omitempty"`
	Limits     *worker.Limits       `json:"limits,omitempty"`
	Device     *Device              `json:"device,omitempty"`
	GrantNanos int64                `json:"grantNanos,omitempty"`
	Bytes      uint64               `json:"bytes,omitempty"`  // bytes to evict
	Evicts     bool                 `json:"evicts,omitempty"` // this gpud may ask the worker to evict
	Used       uint64               `json:"used,omitempty"`   // bytes that the vGPU uses
	Others     *uint64              `json:"others,omitempty"` // part of Used that belongs to other sessions
	Spare      uint64               `json:"spare,omitempty"`  // bytes reserved beyond those asked for
	Sole       bool                 `json:"sole,omitempty"`   // no other session of the vGPU has memory, until recall
	Status     *abi.VGPUStatusReply `json:"status,omitempty"`
	Shares     bool                 `json:"shares,omitempty"` // this gpud supports shared memory
	Share      *Share               `json:"share,omitempty"`
	HasFile    bool                 `json:"file,omitempty"` // a descriptor is sent with the line
	// File is the descriptor; it is owned by the writer of the line until the line is
	// written, and then by its reader.
	File *os.File `json:"-"`
}

// Device is the card that a worker opens.
type Device struct {
	Driver          string   `json:"driver"` // DriverSoft, DriverNull or DriverCUDA
	UUID            [16]byte `json:"uuid"`   // UUID of the card; gpu/cuda finds the card by it
	Name            string   `json:"name"`
	VRAMBytes       uint64   `json:"vramBytes"`
	Multiprocessors int      `json:"multiprocessors"`
	Model           string   `json:"model,omitempty"`      // of a soft GPU: a name in gpu/soft/model; empty: the default
	Capability      int      `json:"capability,omitempty"` // of a soft GPU: 90 is compute capability 9.0; 0: the model's
	Fault           string   `json:"fault,omitempty"`      // of a soft GPU: an injected fault of gpu/soft/model
	Check           string   `json:"check,omitempty"`      // of a soft GPU: checks that it performs on kernels, such as "memory,race,init"
	Engine          string   `json:"engine,omitempty"`     // of a soft GPU: how it runs instructions; a name in gpu/soft/model
}

// ErrLine is the error of a line that violates the protocol; it ends the stream.
var ErrLine = errors.New("bad line in the worker stream")

// ReadToNode reads a line that a worker sent. r must have a buffer of
// MaxWorkerLine.
func ReadToNode(r *bufio.Reader) (m ToNode, err error) {
	if err := readLine(r, MaxWorkerLine, &m); err != nil {
		return ToNode{}, err
	}
	return m, m.check()
}

// ReadFromNode reads a line that gpud sent. r must have a buffer of MaxNodeLine.
func ReadFromNode(r *bufio.Reader) (m FromNode, err error) {
	err = readLine(r, MaxNodeLine, &m)
	return m, err
}

// Write writes m as a line.
func Write(w io.Writer, m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// WriteWith writes m as a line together with a descriptor.
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

// ValidID reports whether s is a valid vGPU ID: printable ASCII without spaces or
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

// maxText bounds the text of a worker that is logged, in bytes.
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

// CleanName makes a name from the guest safe for a terminal and a log: at most
// MaxName bytes of printable ASCII.
func CleanName(s string) string {
	return cleanText(s[:min(len(s), MaxName)])
}
