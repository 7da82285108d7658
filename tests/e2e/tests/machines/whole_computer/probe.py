"""Does what engines of containers and other large programs ask a kernel for, and says what came of it.

Runs in a guest: `probe.py root` and `probe.py user`. Prints a line for each thing that works; the
first one that does not ends it with a trace.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)
IO_URING_SETUP, IO_URING_ENTER, PERF_EVENT_OPEN = 425, 426, 298


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def mount(source, target, kind, options):
    texts = [text.encode() for text in (source, target, kind)]
    checked(libc.mount(*texts, 0, options.encode()))


def overlay(directory):
    parts = {name: f"{directory}/probe/{name}" for name in ("lower", "upper", "work", "merged")}
    for path in parts.values():
        os.makedirs(path)
    with open(f"{parts['lower']}/below", "w") as file:
        file.write("below")
    options = "lowerdir={lower},upperdir={upper},workdir={work}".format(**parts)
    mount("overlay", parts["merged"], "overlay", options)
    with open(f"{parts['merged']}/below", "a") as file:
        file.write(", and above")
    os.rename(f"{parts['merged']}/below", f"{parts['merged']}/other")
    with open(f"{parts['upper']}/other") as file:
        assert file.read() == "below, and above"
    run("umount", parts["merged"])


def overlays():
    for place in ("/var/lib/docker", "/var/lib/containers", "/var/lib/containerd"):
        overlay(place)
    # The control: an overlay is refused where its upper directory is on an overlay, as the root is.
    try:
        overlay("/var/lib/probe")
    except OSError as error:
        return f"in three places; over the root {errno.errorcode[error.errno]}"
    raise AssertionError("an overlay over the root was possible all along")


def bridge():
    run("ip", "netns", "add", "inner")
    for line in (
        "link add bridge9 type bridge",
        "address add 172.30.9.1/24 dev bridge9",
        "link set bridge9 up",
        "link add outer9 type veth peer name inner9 netns inner",
        "link set outer9 master bridge9 up",
        "-n inner address add 172.30.9.2/24 dev inner9",
        "-n inner link set inner9 up",
        "link add dummy9 type dummy",
    ):
        run("ip", *line.split())
    listener = socket.create_server(("172.30.9.1", 9000))
    ask = "import socket; print(socket.create_connection(('172.30.9.1', 9000), 20).recv(9).decode())"
    words = ["ip", "netns", "exec", "inner", "python3", "-c", ask]
    inner = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    listener.settimeout(30)
    connection, (address, _) = listener.accept()
    connection.send(b"hello")
    connection.close()
    assert inner.communicate()[0] == "hello\n"
    for line in ("link delete bridge9", "link delete dummy9", "netns delete inner"):
        run("ip", *line.split())
    return f"a network namespace at {address}"


def loop():
    with open("/var/tmp/disk", "wb") as file:
        file.truncate(16 << 20)
    run("mkfs.ext4", "-q", "/var/tmp/disk")
    os.makedirs("/mnt/disk", exist_ok=True)
    run("mount", "-o", "loop", "/var/tmp/disk", "/mnt/disk")
    with open("/mnt/disk/file", "w") as file:
        file.write("on a disk in a file")
    run("umount", "/mnt/disk")
    return "ext4 in a file"


def fuse():
    os.makedirs("/mnt/fuse", exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    mount("probe", "/mnt/fuse", "fuse", f"fd={device},rootmode=40000,user_id=0,group_id=0")
    _, opcode = struct.unpack_from("II", os.read(device, 8192))
    assert opcode == 26, opcode
    checked(libc.umount2(b"/mnt/fuse", 2))
    return "the kernel asks its file system to begin"


def groups():
    root = "/sys/fs/cgroup"
    with open(f"{root}/cgroup.subtree_control") as file:
        controllers = file.read().split()
    assert {"cpu", "memory", "pids", "cpuset", "io"} <= set(controllers), controllers
    with open("/proc/self/cgroup") as file:
        own = file.read().strip().removeprefix("0::")
    with open(f"{root}{own}/cgroup.procs") as file:
        assert str(os.getpid()) in file.read().split(), own
    group = f"{root}/probe"
    os.makedirs(f"{group}/inner")
    with open(f"{group}/cgroup.subtree_control", "w") as file:
        file.write("+memory +pids +cpu")
    with open(f"{group}/inner/memory.max", "w") as file:
        file.write(str(32 << 20))
    take = "bytearray(96 << 20).find(1); print('alive')"
    enter = f"open('{group}/inner/cgroup.procs', 'w').write('0'); {take}"
    limited = subprocess.run(["python3", "-c", enter], capture_output=True, text=True)
    assert limited.returncode == -9, limited
    # The control: nothing else keeps it from so much memory.
    assert run("python3", "-c", take) == "alive\n"
    with open(f"{group}/inner/memory.events") as file:
        events = dict(line.split() for line in file)
    assert int(events["oom_kill"]) >= 1, events
    os.rmdir(f"{group}/inner")
    os.rmdir(group)
    return "a group below a group, its limit enforced, of " + " ".join(sorted(controllers))


def attribute(kind, content):
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def netfilter_message(kind, flags, number, family, content=b"", resource=0):
    body = struct.pack("=BB", family, 0) + struct.pack(">H", resource) + content
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body


def tables():
    """A table with a chain that translates addresses."""
    internet, acknowledge, create, tables_kind = 2, 5, 0x400, 10 << 8
    name = attribute(1, b"probe\0")
    hook = attribute(1, struct.pack(">I", 4)) + attribute(2, struct.pack(">i", 100))
    chain = name + attribute(3, b"after\0") + attribute(0x8000 | 4, hook) + attribute(7, b"nat\0")
    channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    channel.settimeout(20)
    channel.send(
        netfilter_message(16, 1, 1, 0, resource=10)
        + netfilter_message(tables_kind | 0, acknowledge | create, 2, internet, name)
        + netfilter_message(tables_kind | 3, acknowledge | create, 3, internet, chain)
        + netfilter_message(tables_kind | 2, acknowledge, 4, internet, name)
        + netfilter_message(17, 1, 5, 0, resource=10)
    )
    answers = {}
    while len(answers) < 3:
        data = channel.recv(8192)
        while data:
            length, kind, _, number, _ = struct.unpack_from("=IHHII", data)
            assert kind == 2, kind
            answers[number] = struct.unpack_from("=i", data, 16)[0]
            data = data[(length + 3) & ~3 :]
    assert set(answers.values()) == {0}, answers
    return "nf_tables takes a chain of address translation"


def modules():
    with open("/proc/modules") as file:
        loaded = {line.split()[0]: int(line.split()[1]) for line in file}
    # Those that `iptables` of either kind needs for what Docker and podman say.
    wanted = """nft_compat nft_masq nft_fib_inet nft_reject_inet iptable_nat iptable_filter br_netfilter
        xt_addrtype xt_conntrack xt_comment xt_MASQUERADE xt_multiport xt_mark xt_nat tun""".split()
    assert not set(wanted) - set(loaded), set(wanted) - set(loaded)
    return f"{len(loaded)} loaded, {sum(loaded.values()) >> 10} KiB"


def forwarding():
    path = "/proc/sys/net/ipv4/ip_forward"
    with open(path) as file:
        before = file.read()
    with open(path, "w") as file:
        file.write("1")
    with open(path, "w") as file:
        file.write(before)
    return "can be switched on"


def ring():
    """Has a ring of requests do nothing, once."""
    settings = bytearray(120)
    address = (ctypes.c_char * 120).from_buffer(settings)
    descriptor = checked(libc.syscall(IO_URING_SETUP, 4, address))
    features = struct.unpack_from("=I", settings, 20)[0]
    assert features & 1, features
    _, tail, _, _, _, _, array = struct.unpack_from("=7I", settings, 40)
    _, done_tail, _, _, _, done = struct.unpack_from("=6I", settings, 80)
    rings = mmap.mmap(descriptor, 4096)
    requests = mmap.mmap(descriptor, 4096, offset=0x10000000)
    struct.pack_into("=Q", requests, 32, 42)
    struct.pack_into("=I", rings, array, 0)
    struct.pack_into("=I", rings, tail, 1)
    assert checked(libc.syscall(IO_URING_ENTER, descriptor, 1, 1, 1, None, 0)) == 1
    assert struct.unpack_from("=I", rings, done_tail) == (1,)
    assert struct.unpack_from("=Qi", rings, done) == (42, 0)
    return "io_uring does a request"


def loopback():
    names = {entry[4][0] for entry in socket.getaddrinfo("localhost", 80)}
    assert "::1" in names, names
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    thread = threading.Thread(target=lambda: listener.accept()[0].send(b"six"))
    thread.start()
    with socket.create_connection(listener.getsockname()[:2], 20) as connection:
        assert connection.recv(3) == b"six"
    thread.join()
    return "::1 connects"


def perf():
    software, task_clock = 1, 1
    settings = struct.pack("=IIQ", software, 112, task_clock) + bytes(96)
    descriptor = checked(libc.syscall(PERF_EVENT_OPEN, settings, 0, -1, -1, 0))
    sum(range(100_000))
    (spent,) = struct.unpack("=Q", os.read(descriptor, 8))
    assert spent > 0
    return f"a user counts its own time, {spent // 1_000_000} ms"


def devices():
    os.close(os.open("/dev/fuse", os.O_RDWR))
    tunnel = os.open("/dev/net/tun", os.O_RDWR)
    # TUNGETFEATURES
    fcntl.ioctl(tunnel, 0x800454CF, bytearray(4))
    with open("/dev/shm/probe", "w") as file:
        file.write("shared")
    queue = os.open("/dev/mqueue/probe", os.O_RDWR | os.O_CREAT)
    os.close(queue)
    return "fuse, net/tun, shm and mqueue are open to a user"


def namespaces():
    words = "unshare --map-root-user --mount --net --pid --fork --mount-proc".split()
    said = run(*words, "sh", "-c", "id -u; ls -d /proc/[0-9]* | grep -c .")
    # Of a container's processes it sees its own.
    assert said.split()[0] == "0" and int(said.split()[1]) < 9, said
    return "a user is root in its own, with a view of its processes"


PROBES = {
    "root": [modules, overlays, bridge, loop, fuse, groups, tables, forwarding],
    "user": [ring, loopback, perf, devices, namespaces],
}

for probe in PROBES[sys.argv[1]]:
    print(f"{probe.__name__}: {probe()}", flush=True)
