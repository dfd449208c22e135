import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * Runs Kafka's command-line tools one after the other in one JVM, which saves most of the time that
 * each would take to start. A line of stdin has, in base64 and separated by spaces, a main class,
 * its arguments, and what it is to read from its own stdin; the answer is its exit code, stdout and
 * stderr, the latter two in base64.
 */
public final class ToolDriver {
    /** What a tool's exit becomes. */
    private static final class Ended extends RuntimeException {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** A stream whose content is taken away after each tool; deaf once one has ended. */
    private static final class Taken extends OutputStream {
        private ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int value) {
            if (code == null) bytes.write(value);
        }

        @Override
        public synchronized void write(byte[] from, int at, int count) {
            if (code == null) bytes.write(from, at, count);
        }

        synchronized String take() {
            String text = Base64.getEncoder().encodeToString(bytes.toByteArray());
            bytes = new ByteArrayOutputStream();
            return text;
        }
    }

    private static volatile Integer code;  // the first exit counts: some tools catch it themselves

    private ToolDriver() { }

    /** Kafka's Exit has moved between packages from one version to the next. */
    private static void catchExits() throws Exception {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException e) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object caught = Proxy.newProxyInstance(ToolDriver.class.getClassLoader(),
            new Class<?>[] {procedure}, (proxy, method, arguments) -> {
                if (code == null) code = (Integer) arguments[0];
                throw new Ended();
            });
        exit.getMethod("setExitProcedure", procedure).invoke(null, caught);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, caught);
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        Taken out = new Taken();
        Taken err = new Taken();
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        catchExits();
        for (String line; (line = questions.readLine()) != null;) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ", -1)) {
                words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            }
            code = null;
            String input = words.get(words.size() - 1);
            System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            int result = 0;
            try {
                Method main = Class.forName(words.get(0)).getMethod("main", String[].class);
                List<String> arguments = words.subList(1, words.size() - 1);
                main.invoke(null, (Object) arguments.toArray(new String[0]));
            } catch (InvocationTargetException e) {
                if (code == null) {
                    e.getCause().printStackTrace();
                    result = 1;
                }
            }
            if (code != null) result = code;
            answers.println(result + " " + out.take() + " " + err.take());
            answers.flush();
        }
    }
}
