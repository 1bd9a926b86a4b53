# Answers each POST with the method that Rack takes, or Rails of JSON.
require 'json'
require 'rack'
require 'rack/method_override'
require 'socket'
require 'stringio'

taken = ->(env) { [200, {}, [env['REQUEST_METHOD']]] }
rack = Rack::MethodOverride.new(taken)

def content_of(line)
  line.gets
  fields = {}
  while (field = line.gets) && field != "\r\n"
    name, value = field.chomp.split(/: ?/, 2)
    fields[name.downcase] = value
  end
  [fields['content-type'].to_s, line.read(fields['content-length'].to_i).to_s]
end

server = TCPServer.new('127.0.0.1', Integer(ARGV[0]))
loop do
  line = server.accept
  begin
    kind, content = content_of(line)
    env = {
      'REQUEST_METHOD' => 'POST', 'PATH_INFO' => '/', 'QUERY_STRING' => '', 'CONTENT_TYPE' => kind,
      'CONTENT_LENGTH' => content.bytesize.to_s, 'rack.input' => StringIO.new(content.b),
      'rack.errors' => StringIO.new, 'SERVER_NAME' => 'localhost', 'SERVER_PORT' => '80'
    }
    method = kind.include?('json') ? JSON.parse(content)['_method'].to_s : rack.call(env)[2].join
    line.write "HTTP/1.1 200 OK\r\nContent-Length: #{method.bytesize}\r\nConnection: close\r\n\r\n#{method}"
  rescue StandardError
    # What it refuses, it does not do.
    line.write "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
  ensure
    line.close
  end
end
