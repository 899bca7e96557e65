"""A DQN-like loop on a small deterministic environment: replay, target network, masked update."""
import collections
import random
import numpy as np
import tensorflow as tf
from tensorflow import keras


class Corridor:
    """Walk right along 6 cells; the reward is at the end."""

    def reset(self):
        self.at, self.steps = 0, 0
        return self.state()

    def state(self):
        s = np.zeros(6, "float32")
        s[self.at] = 1.0
        return s

    def step(self, action):
        self.at = max(0, min(5, self.at + (1 if action == 1 else -1)))
        self.steps += 1
        done = self.at == 5 or self.steps >= 20
        return self.state(), 1.0 if self.at == 5 else -0.05, done


random.seed(0)
np.random.seed(0)
tf.random.set_seed(0)
num_actions, gamma, batch_size = 2, 0.9, 32


def create_q_model():
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(num_actions)])


model, model_target = create_q_model(), create_q_model()
model_target.set_weights(model.get_weights())
optimizer = keras.optimizers.Adam(learning_rate=0.01, clipnorm=1.0)
loss_function = keras.losses.Huber()
memory = collections.deque(maxlen=500)
env = Corridor()
epsilon, frame = 1.0, 0
lengths = []
for episode in range(25):
    state, done = env.reset(), False
    while not done:
        frame += 1
        if random.random() < epsilon:
            action = random.randrange(num_actions)
        else:
            action_probs = model(tf.expand_dims(tf.convert_to_tensor(state), 0), training=False)
            action = int(tf.argmax(action_probs[0]).numpy())
        next_state, reward, done = env.step(action)
        memory.append((state, action, reward, next_state, float(done)))
        state = next_state
        if frame % 4 == 0 and len(memory) >= batch_size:
            sample = random.sample(memory, batch_size)
            states, actions, rewards, next_states, dones = map(np.array, zip(*sample))
            future_rewards = model_target.predict(next_states, verbose=0)
            updated_q = rewards.astype("float32") + gamma * tf.reduce_max(future_rewards, axis=1) * (1.0 - dones.astype("float32"))
            masks = tf.one_hot(actions, num_actions)
            with tf.GradientTape() as tape:
                q_values = model(states)
                q_action = tf.reduce_sum(tf.multiply(q_values, masks), axis=1)
                loss = loss_function(updated_q, q_action)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
        if frame % 50 == 0:
            model_target.set_weights(model.get_weights())
    epsilon = max(0.1, epsilon * 0.9)
    lengths.append(env.steps)
print("episodes", len(lengths), "memory", len(memory) <= 500)
print("q values", model.predict(np.eye(6, dtype="float32"), verbose=0).shape)
print("loss is finite", bool(np.isfinite(loss.numpy())))
print("updates", int(optimizer.iterations) > 10)
state, steps = env.reset(), 0
print("last cell prefers right:", bool(np.diff(model(np.eye(6, dtype="float32")[4:5]).numpy())[0, 0] > 0))
