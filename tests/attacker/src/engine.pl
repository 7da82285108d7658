# What somebody tries who has taken over an engine, from inside its jail. Each argument is one
# attempt; a line for each says what came of it. There is no module in a jail, and none is used.
$| = 1;

sub reach {
    my ($port, $bytes) = @_;
    # An internet socket, a stream, to 127.0.0.1.
    socket(my $socket, 2, 1, 0) or return;
    connect($socket, pack('S n C4 x8', 2, $port, 127, 0, 0, 1)) or return;
    syswrite($socket, $bytes);
}

sub peek {
    open(my $file, '<', $_[0]) or return;
    defined sysread($file, my $byte, 1);
}

sub create {
    # For reading and writing, and only if it is new.
    sysopen(my $file, $_[0], 0302, 0600) or return;
    syswrite($file, 'own');
}

sub fill {
    my ($path, $mebibytes) = @_;
    open(my $file, '>>', $path) or return;
    for (1 .. $mebibytes) {
        syswrite($file, 'x' x (1 << 20)) == 1 << 20 or return;
    }
    1;
}

sub place {
    my ($path, $offset) = @_;
    open(my $file, '+<', $path) or return;
    sysseek($file, $offset, 0) && syswrite($file, 'x');
}

my %attempts = (
    read => \&peek,
    write => sub { open(my $file, '+<', $_[0]) },
    create => \&create,
    fill => \&fill,
    place => \&place,
    reach => \&reach,
    take => sub { my $memory = 'x' x ($_[0] << 20); 1 },
    call => sub { syscall(shift, map { /^-?\d+$/ ? $_ + 0 : $_ } @_) != -1 },
);
# A file that grows past its limit is an error like any other.
$SIG{XFSZ} = 'IGNORE';
for my $attempt (@ARGV) {
    my ($what, @with) = split /\t/, $attempt;
    $! = 0;
    print 0 + !!$attempts{$what}->(@with), ' ', 0 + $!, "\n";
}
