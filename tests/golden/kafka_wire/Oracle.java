// Turns field values into bytes with Kafka's generated message classes. Reads lines
// "message version correlationId clientId json" (tabs between; clientId "-" is null) and prints
// "version headerBytes hex" of header and body. With the argument "errors" prints the table of
// error codes instead.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class Oracle {
  static String hex(Message message, short version) {
    ObjectSerializationCache cache = new ObjectSerializationCache();
    ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
    message.write(new ByteBufferAccessor(buffer), cache, version);
    return HexFormat.of().formatHex(buffer.array(), 0, buffer.position());
  }

  static String frame(String[] columns, ObjectMapper json) throws Exception {
    String name = columns[0];
    short version = Short.parseShort(columns[1]);
    int correlationId = Integer.parseInt(columns[2]);
    ApiMessage body = (ApiMessage) Class
        .forName("org.apache.kafka.common.message." + name + "DataJsonConverter")
        .getMethod("read", JsonNode.class, short.class)
        .invoke(null, json.readTree(columns[4]), version);
    ApiKeys api = ApiKeys.forId(body.apiKey());
    String header;
    if (name.endsWith("Request")) {
      RequestHeaderData data = new RequestHeaderData()
          .setRequestApiKey(api.id)
          .setRequestApiVersion(version)
          .setCorrelationId(correlationId)
          .setClientId(columns[3].equals("-") ? null : columns[3]);
      header = hex(data, api.requestHeaderVersion(version));
    } else {
      header = hex(new ResponseHeaderData().setCorrelationId(correlationId),
                   api.responseHeaderVersion(version));
    }
    return version + " " + header.length() / 2 + " " + header + hex(body, version);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 1 && arguments[0].equals("errors")) {
      for (Errors error : Errors.values()) {
        boolean retriable = error.exception() instanceof RetriableException;
        System.out.println(error.code() + " " + error + " " + (retriable ? "retriable" : "final"));
      }
      return;
    }
    ObjectMapper json = new ObjectMapper();
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(frame(line.split("\t", 5), json));
    }
  }
}
