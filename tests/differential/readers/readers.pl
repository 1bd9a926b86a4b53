# What the parsers of Perl's packages make of targets and queries. The exchange
# is that of readers.js.
use strict;
use warnings;
no warnings;
use URI;
use CGI ();
use Mojo::URL;
use Mojo::Parameters;
use Plack::Request;
use Encode ();

sub escaped {
    my ($text) = @_;
    $text = '' unless defined $text;
    $text = Encode::encode('UTF-8', $text) if utf8::is_utf8($text);
    $text =~ s/([^A-Za-z0-9])/sprintf('%%%02x', ord $1)/ge;
    return $text;
}

sub plack {
    my ($query) = @_;
    my $request = Plack::Request->new({ QUERY_STRING => $query, REQUEST_METHOD => 'GET' });
    return @{ $request->_query_parameters };
}

sub cgi {
    my ($query) = @_;
    local $ENV{REQUEST_METHOD} = 'GET';
    local $ENV{QUERY_STRING} = $query;
    CGI::initialize_globals();
    my $cgi = CGI->new;
    return map { my $key = $_; map { ($key, $_) } $cgi->multi_param($key) } $cgi->multi_param;
}

my %paths = (
    'perl URI' => sub { URI->new($_[0])->path },
    'perl URI http' => sub { URI->new($_[0], 'http')->path },
    'perl URI joined' => sub { URI->new_abs($_[0], 'http://localhost/')->path },
    'mojo' => sub { Mojo::URL->new($_[0])->path->to_string },
    'mojo canonical' => sub { Mojo::URL->new($_[0])->path->canonicalize->to_string },
    'mojo joined' => sub { Mojo::URL->new($_[0])->base(Mojo::URL->new('http://localhost/'))->to_abs->path->to_string },
);
my %queries = (
    'perl CGI' => \&cgi,
    'perl URI' => sub { URI->new("/?$_[0]")->query_form },
    'mojo' => sub { @{ Mojo::Parameters->new($_[0])->pairs } },
    'plack' => \&plack,
);

my @out;
while (my $line = <STDIN>) {
    chomp $line;
    my ($kind, $text) = (substr($line, 0, 1), substr($line, 2));
    my $table = $kind eq 'P' ? \%paths : \%queries;
    my @entries;
    for my $name (sort keys %$table) {
        # What a parser refuses, it does not serve.
        my @found = eval { $table->{$name}->($text) };
        if ($@) { print STDERR "$name: $@" if $ENV{READER_FAULTS}; next; }
        if ($kind eq 'P') {
            push @entries, escaped($name) . ' ' . escaped($found[0]);
        } else {
            while (my ($key, $value) = splice @found, 0, 2) {
                push @entries, join ' ', map { escaped($_) } $name, $key, $value;
            }
        }
    }
    push @out, join "\t", @entries;
}
print "$_\n" for @out;
