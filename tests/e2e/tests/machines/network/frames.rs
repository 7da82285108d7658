//! Frames that no socket makes: other addresses, other protocols, pieces of packets.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{engine, exec_as_root, figure, setting_or_skip, until};
use dayfly_host::net::{GATEWAY_ADDRESS, SlotDenials, slot_denials};
use dayfly_netlab::frame::{self, Arp, Frame};
use dayfly_netlab::internet::{ALLOWED, EVIL};
use dayfly_netlab::namespace::run_in;
use dayfly_netlab::wire::question_packet;
use hickory_proto::rr::RecordType;

use super::guest::{Guest, ensure_says, get};
use super::lab::{Lab, public};

const PROGRAM: &str = include_str!("frames.py");
const READY_MAX: Duration = Duration::from_secs(30);

/// Puts frames on a guest's cable.
pub(crate) async fn send(guest: &Guest<'_>, frames: &[Vec<u8>]) -> Result<()> {
    let mut packed = Vec::new();
    for frame in frames {
        packed.extend(u16::try_from(frame.len())?.to_be_bytes());
        packed.extend(frame);
    }
    guest.upload("/tmp/frames", packed).await?;
    guest.upload("/tmp/frames.py", PROGRAM.into()).await?;
    let sent = guest
        .output("python3 /tmp/frames.py send /tmp/frames")
        .await?;
    ensure!(
        sent == frames.len().to_string(),
        "{sent} of {} were sent",
        frames.len()
    );
    Ok(())
}

/// Keeps every frame that comes to a guest.
pub(crate) struct Sniffer<'a> {
    guest: &'a Guest<'a>,
}

impl<'a> Sniffer<'a> {
    pub(crate) async fn start(guest: &'a Guest<'a>) -> Result<Self> {
        guest.upload("/tmp/frames.py", PROGRAM.into()).await?;
        let command = "rm -f /tmp/stop*; setsid python3 /tmp/frames.py listen /tmp/heard /tmp/stop \
                       >/dev/null 2>&1 &";
        guest.output(command).await?;
        guest.wait_for_file("/tmp/stop.ready").await?;
        Ok(Self { guest })
    }

    pub(crate) async fn stop(self) -> Result<Vec<Vec<u8>>> {
        self.guest.output("touch /tmp/stop").await?;
        self.guest.wait_for_file("/tmp/stop.done").await?;
        let text = self.guest.output("od -An -v -tx1 /tmp/heard").await?;
        let bytes: Vec<u8> = text
            .split_whitespace()
            .map(|pair| u8::from_str_radix(pair, 16).context("no hex"))
            .collect::<Result<_>>()?;
        let mut rest = bytes.as_slice();
        let mut frames = Vec::new();
        while let [high, low, more @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let (frame, behind) = more.split_at_checked(length).context("half a frame")?;
            frames.push(frame.to_vec());
            rest = behind;
        }
        Ok(frames)
    }
}

impl Guest<'_> {
    pub(crate) async fn wait_for_file(&self, path: &str) -> Result<()> {
        until(path, READY_MAX, || async {
            let looked = exec_as_root(&self.lab.client, &self.id, &format!("test -e {path}")).await;
            looked.ok().filter(|ran| ran.exit_code == 0).map(drop)
        })
        .await
    }

    /// Where its tap is.
    pub(crate) fn namespace(&self) -> Result<std::path::PathBuf> {
        let slot = engine::slot(&self.lab.daemon, &self.id)?.context("it is in no slot")?;
        Ok(self.lab.daemon.path().join(format!("node/netns/{slot}")))
    }

    pub(crate) fn denials(&self) -> Result<SlotDenials> {
        Ok(slot_denials(&self.namespace()?)?)
    }
}

fn evil() -> Ipv4Addr {
    EVIL.parse().unwrap()
}

/// From addresses that are not the guest's, and lies about who has which.
fn spoofed() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for source in [
        "10.11.0.1",
        "10.11.0.3",
        "93.184.216.34",
        "127.0.0.1",
        "0.0.0.0",
    ] {
        let mut frame = Frame::syn(evil(), 4000, 80);
        frame.from = source.parse().unwrap();
        frames.push(frame.bytes());
    }
    let mut frame = Frame::syn(evil(), 4000, 80);
    frame.from_hardware = [2, 0, 0, 0, 0, 9];
    frames.push(frame.bytes());
    let lie = |operation, from: Ipv4Addr, from_hardware| Arp {
        operation,
        from,
        from_hardware,
        ..Arp::honest()
    };
    let own = Arp::honest().from_hardware;
    frames.push(lie(2, GATEWAY_ADDRESS, own).bytes());
    frames.push(lie(1, GATEWAY_ADDRESS, own).bytes());
    frames.push(lie(2, Ipv4Addr::new(10, 11, 0, 77), own).bytes());
    frames.push(lie(2, Arp::honest().from, [2, 0, 0, 0, 0, 9]).bytes());
    frames
}

/// Neither of the guest's protocols, or hidden inside of one.
fn other() -> Vec<Vec<u8>> {
    let inner = Frame::syn(evil(), 4000, 80).bytes()[14..].to_vec();
    let mut frames: Vec<Vec<u8>> = [
        frame::IPIP,
        frame::IPV6,
        frame::GRE,
        frame::ESP,
        frame::SCTP,
        frame::UDP_LITE,
        255,
        0,
    ]
    .iter()
    .map(|protocol| Frame::new(evil(), *protocol, inner.clone()).bytes())
    .collect();
    frames.push(Frame::ping(evil(), b"exfiltrated").bytes());
    frames.push(Frame::ping(GATEWAY_ADDRESS, b"exfiltrated").bytes());
    for kind in [0x8100_u16, 0x88a8, 0x8847, 0x8863, 0x88cc, 0x0842] {
        let packet = [&[0, 7, 8, 0][..], &inner].concat();
        let own = Arp::honest().from_hardware;
        frames.push(frame::ethernet([2, 0xdf, 0, 0, 0, 2], own, kind, &packet));
    }
    // An offer of addresses, as a server for them makes it.
    frames.push(Frame::udp(Ipv4Addr::BROADCAST, 67, 68, &[2; 240]).bytes());
    frames
}

/// Packets in pieces, with options, and at the end of their life.
fn pieces() -> Vec<Vec<u8>> {
    let whole = Frame::syn(evil(), 4000, 80);
    let mut frames = Vec::new();
    let mut piece = |payload: &[u8], fragment: u16| {
        let mut frame = Frame::new(evil(), frame::TCP, payload.to_vec());
        frame.fragment = fragment;
        frames.push(frame.bytes());
    };
    // The ports in a first piece of eight bytes, the rest behind; then one that overlaps it.
    piece(&whole.payload[..8], 0x2000);
    piece(&whole.payload[8..], 0x0001);
    piece(&whole.payload[..16], 0x2000);
    piece(&whole.payload[8..], 0x0001);
    let mut options = whole.clone();
    options.options = vec![131, 7, 4, 93, 184, 216, 34, 0];
    frames.push(options.bytes());
    options.options = vec![7, 7, 4, 0, 0, 0, 0, 0];
    frames.push(options.bytes());
    let mut dead = Frame::ping(evil(), b"x");
    dead.ttl = 0;
    frames.push(dead.bytes());
    dead.ttl = 1;
    frames.push(dead.bytes());
    frames
}

fn version_six() -> Vec<Vec<u8>> {
    let everybody = "ff02::1".parse().unwrap();
    let routers = "ff02::2".parse().unwrap();
    let servers = "ff02::1:2".parse().unwrap();
    vec![
        // Router advertisement, neighbour advertisement and solicitation, ping.
        frame::ipv6(
            everybody,
            58,
            &[134, 0, 0, 0, 64, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        frame::ipv6(everybody, 58, &[136; 24]),
        frame::ipv6(routers, 58, &[133, 0, 0, 0, 0, 0, 0, 0]),
        frame::ipv6(everybody, 58, &[128, 0, 0, 0, 0, 1, 0, 1]),
        frame::ipv6("fe80::1".parse().unwrap(), 6, &[0; 20]),
        // A request for addresses.
        frame::ipv6(servers, 17, &[0x02, 0x22, 0x02, 0x23, 0, 8, 0, 0]),
    ]
}

#[tokio::test]
async fn b6_b8_b9_b10_frames_that_no_socket_makes_go_nowhere() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let attacker = lab.internet.sink(EVIL, 80);
    let datagrams = lab.internet.udp_sink(EVIL, 68);
    // The widest mode: whatever stops these is not the policy.
    let guest = lab.guest(public()).await?;
    let quiet = lab.internet.arrivals();
    let mut before = guest.denials()?;
    for (what, frames) in [
        ("spoofed", spoofed()),
        ("other", other()),
        ("pieces", pieces()),
        ("version 6", version_six()),
    ] {
        send(&guest, &frames).await?;
        let now = guest.denials()?;
        let sum = |d: &SlotDenials| d.udp + d.ipv6 + d.spoofed + d.connections + d.other;
        let counted = sum(&now) - sum(&before);
        figure!(
            "{what}: {} frames sent, {counted} counted as denied: {now:?}",
            frames.len()
        );
        ensure!(
            counted >= u64::try_from(frames.len())?,
            "{what}: {before:?} {now:?}"
        );
        match what {
            "spoofed" => ensure!(now.spoofed - before.spoofed >= 10, "{now:?}"),
            "version 6" => ensure!(now.ipv6 - before.ipv6 >= 6, "{now:?}"),
            _ => {}
        }
        before = now;
    }
    lab.ensure_nothing_left_since(quiet)?;
    attacker.assert_nothing_came();
    datagrams.assert_nothing_came();
    // The control: an honest frame by the same hand is let through.
    let packet = question_packet("allowed.test", RecordType::A);
    let honest = Frame::udp("8.8.8.8".parse()?, 4000, 53, &packet).bytes();
    send(&guest, &[honest, Arp::honest().bytes()]).await?;
    until(
        "the question was asked",
        Duration::from_secs(10),
        || async {
            let asked = lab.internet.names.questions();
            (asked == ["allowed.test"]).then_some(())
        },
    )
    .await?;
    lab.internet.http(ALLOWED, 80, "allowed");
    let report = guest
        .probe_one(get(&format!("{ALLOWED}:80"), "allowed.test", "/"))
        .await?;
    ensure_says(&report, "hello from allowed")?;
    // The gateway still knows the guest, and the guest the gateway.
    let neighbours = guest.output("ip neigh show 10.11.0.1").await?;
    ensure!(neighbours.contains("02:df:00:00:00:02"), "{neighbours}");
    let neighbours = run_in(&guest.namespace()?, "ip", &["neigh", "show"], "");
    ensure!(
        neighbours.contains("10.11.0.2 dev tap0 lladdr 02:df:00:00:00:01"),
        "{neighbours}"
    );
    ensure!(neighbours.lines().count() == 1, "{neighbours}");
    lab.finish().await
}
