# What the parsers of Ruby and of Rack make of targets and queries. The exchange
# is that of readers.js.
require 'stringio'
require 'uri'
require 'cgi'
require 'rack'
require 'rack/utils'
require 'webrick'

def escape(text)
  text.to_s.b.gsub(/[^A-Za-z0-9]/n) { |c| format('%%%02x', c.ord) }
end

CONFIG = WEBrick::Config::HTTP
PATHS = {
  'ruby URI.parse' => ->(t) { URI.parse(t).path },
  'ruby URI' => ->(t) { URI(t).path },
  'ruby URI.join' => ->(t) { URI.join('http://localhost/', t).path },
  'ruby URI::RFC2396' => ->(t) { URI::RFC2396_Parser.new.parse(t).path },
  'ruby URI.split' => ->(t) { URI.split(t)[5] },
  'ruby URI decoded' => ->(t) { URI.parse(URI.decode_www_form_component(t.split('?')[0].gsub('+', '%2B'))).path },
  'webrick' => lambda { |t|
    request = WEBrick::HTTPRequest.new(CONFIG)
    request.parse(StringIO.new("GET #{t} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    request.path
  },
  'rack' => ->(t) { Rack::MockRequest.env_for(t)['PATH_INFO'] },
  'rack clean' => ->(t) { Rack::Utils.clean_path_info(Rack::Utils.unescape_path(t.split('?')[0])) },
}.freeze

def leaves(key, value, out)
  case value
  when Hash then value.each_value { |inner| leaves(key, inner, out) }
  when Array then value.each { |inner| leaves(key, inner, out) }
  else out << [key, value]
  end
end

def pairs(parsed)
  out = []
  parsed.each { |key, value| leaves(key, value, out) }
  out
end

QUERIES = {
  'ruby decode_www_form' => ->(q) { URI.decode_www_form(q) },
  'ruby CGI' => ->(q) { pairs(CGI.parse(q)) },
  'webrick' => ->(q) { WEBrick::HTTPUtils.parse_query(q).flat_map { |k, v| v.list.map { |one| [k, one] } } },
  'rack nested' => ->(q) { pairs(Rack::Utils.parse_nested_query(q)) },
  'rack nested ;' => ->(q) { pairs(Rack::Utils.parse_nested_query(q, '&;')) },
  'rack nested unescaped' => ->(q) { pairs(Rack::Utils.parse_nested_query(CGI.unescape(q))) },
  'rack' => ->(q) { pairs(Rack::Utils.parse_query(q)) },
  'rack ;' => ->(q) { pairs(Rack::Utils.parse_query(q, '&;')) },
}.freeze

$stderr = File.open(File::NULL, 'w') unless ENV['READER_FAULTS']
out = STDIN.read.split("\n").reject(&:empty?).map do |line|
  kind = line[0]
  text = line[2..]
  entries = []
  (kind == 'P' ? PATHS : QUERIES).each do |name, read|
    found = read.call(text.dup)
    if kind == 'P'
      entries << "#{escape(name)} #{escape(found)}"
    else
      found.each { |key, value| entries << [name, key, value].map { |one| escape(one) }.join(' ') }
    end
  rescue StandardError => e
    # What a parser refuses, it does not serve.
    warn "#{name} #{text}: #{e.message}" if ENV['READER_FAULTS']
  end
  entries.join("\t")
end
puts out
